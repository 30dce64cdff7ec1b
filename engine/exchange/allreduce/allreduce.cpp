#include "starling/engine/exchange/allreduce/allreduce.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"

namespace starling::core {
namespace {

constexpr std::string_view overlap = "overlap";
constexpr std::string_view comma_overlap = ",overlap";

Result<AllreduceSettings> parse_argument(std::string_view argument) {
  AllreduceSettings settings;
  if (argument == overlap) return AllreduceSettings{.algorithm = {}, .overlaps = true};
  if (argument.ends_with(comma_overlap)) {
    settings.overlaps = true;
    argument.remove_suffix(comma_overlap.size());
  }
  if (argument == AllreduceExchange::arguments.front()) return settings;
  constexpr const auto& examples = AllreduceExchange::arguments;
  const std::string_view name = argument.substr(0, argument.find(':'));
  const bool is_known = std::ranges::any_of(examples, [&](std::string_view example) {
    return example.substr(0, example.find(':')) == name;
  });
  if (const std::string first = std::string{overlap} + ","; argument.starts_with(first))
    return Error{"exchange: allreduce: " + quote(argument) + " is unknown; valid: " +
                 std::string{argument.substr(first.size())} + std::string{comma_overlap}};
  if (!is_known || name == overlap)
    return Error{"exchange: allreduce: " + quote(argument) + " is unknown; " +
                 suggest(argument, std::vector<std::string>{examples.begin(), examples.end()})};
  auto algorithm = collective::parse_algorithm(argument);
  if (!algorithm) return std::move(algorithm).error().within("exchange: allreduce");
  settings.algorithm = collective::print(*algorithm);
  return settings;
}

}  // namespace

Result<AllreduceSettings> parse_allreduce(std::string_view name) {
  const std::string_view argument = exchange_argument(name);
  return parse_argument(name == AllreduceExchange::name ? AllreduceExchange::arguments.front()
                                                        : argument);
}

std::string print(const AllreduceSettings& settings) {
  const std::string name{AllreduceExchange::name};
  if (settings.algorithm.empty())
    return settings.overlaps ? name + ":" + std::string{overlap} : name;
  return name + ":" + settings.algorithm + std::string{settings.overlaps ? comma_overlap : ""};
}

AllreduceExchange::AllreduceExchange(const ExchangeOptions& options)
    : RoundExchange(options, [&] {
        const AllreduceSettings settings = parse_allreduce(options.name).value();
        return RoundExchangeOptions{.algorithm = settings.algorithm,
                                    .overlaps = settings.overlaps,
                                    .shards_optimizer = settings.shards_optimizer()};
      }()) {}

bool AllreduceSettings::shards_optimizer() const { return algorithm == collective::Parts::name; }

bool AllreduceExchange::has_shards(std::string_view name) {
  const auto settings = parse_allreduce(name);
  return settings.ok() && settings->shards_optimizer();
}

std::optional<MemberId> AllreduceExchange::answerer(std::string_view name,
                                                    const Configuration& configuration,
                                                    RangeId range) {
  return has_shards(name) ? primary_of(configuration, range) : first_worker(configuration);
}

Result<void> AllreduceExchange::check_argument(std::string_view argument) {
  if (auto settings = parse_argument(argument); !settings) return settings.error();
  return {};
}

Result<void> AllreduceExchange::check_workers(std::string_view name, std::size_t workers) {
  if (auto valid = RoundExchange::check_workers(name, workers); !valid) return valid;
  const auto settings = parse_allreduce(name);
  if (!settings) return settings.error();
  if (settings->algorithm.empty()) return {};
  const auto algorithm = collective::parse_algorithm(settings->algorithm);
  auto fits = std::visit([&](const auto& chosen) { return chosen.check(workers); }, *algorithm);
  if (!fits) return std::move(fits).error().within("exchange " + std::string{name});
  return {};
}

}  // namespace starling::core
