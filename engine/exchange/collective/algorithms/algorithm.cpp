#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

#include "starling/base/text.hpp"

namespace starling::collective {
namespace {

/// True if all types of the list are algorithms.
template <class... As>
constexpr bool are_algorithms(std::type_identity<std::variant<As...>>) {
  return (CollectiveAlgorithm<As> && ...);
}
static_assert(are_algorithms(std::type_identity<Algorithm>{}));

template <CollectiveAlgorithm A>
Schedule all_reduce_of(const A& algorithm, std::size_t members, Rank root) {
  if constexpr (WholeAllReduce<A>)
    return algorithm.all_reduce(members);
  else
    return with_broadcast(algorithm.reduce(members, root));
}

}  // namespace

Result<Algorithm> parse_algorithm(std::string_view text) {
  return parse_alternative<Algorithm>("collective", text);
}

std::string print(const Algorithm& algorithm) { return print_alternative(algorithm); }

Result<Schedule> make_schedule(const Algorithm& algorithm, Operation operation, std::size_t members,
                               Rank root) {
  const std::size_t most =
      operation == Operation::all_to_all ? all_to_all_members_max : members_max;
  if (members < 1 || members > most)
    return Error{print_count(members, "member") + "; valid: " + std::string{name(operation)} +
                 " among 1 to " + std::to_string(most)};
  if (root >= members)
    return Error{"root " + std::to_string(root) + " among " + print_count(members, "member") +
                 "; valid: 0 to " + std::to_string(members - 1)};
  return std::visit(
      [&](const auto& chosen) -> Result<Schedule> {
        if (auto fits = chosen.check(members); !fits)
          return std::move(fits).error().within(print(algorithm));
        return specialised(all_reduce_of(chosen, members, root), operation, root);
      },
      algorithm);
}

}  // namespace starling::collective
