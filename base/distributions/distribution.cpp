#include "starling/base/distributions/distribution.hpp"

#include <optional>

#include "starling/base/lasting.hpp"

namespace starling {
namespace {

using Law = Distribution::Law;

/// Returns the law called `name`, except those that need no reader.
std::optional<Law> read_law(std::string_view name, laws::LawReader& read) {
  std::optional<Law> found;
  for_each_alternative<Law>([&]<laws::LawRule L>(const L&) {
    if constexpr (!std::same_as<L, laws::None> && !std::same_as<L, laws::Trace>) {
      static_assert(laws::ReadLaw<L>);
      if (name == L::name) found = L::parse(read);
    }
  });
  return found;
}

}  // namespace

Distribution::Duration Distribution::draw(Random& random) const {
  return std::visit([&](const auto& law) { return lasting(law.draw(random)); }, law_);
}

double Distribution::mean() const {
  return std::visit([](const auto& law) { return law.mean_ns(); }, law_) / 1e9;
}

Result<Distribution> parse_distribution(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return Error{"distribution " + shown(text) + ": " + why + "; valid: " + forms_of<Law>(", ")};
  };
  constexpr std::string_view trace = "trace:";
  if (text.starts_with(trace) && text.size() > trace.size()) {
    // Handled before the grammar: a file's name may hold the grammar's separators.
    auto law = laws::Trace::read(std::string{text.substr(trace.size())});
    if (!law) return Error{"distribution " + std::string{trace} + law.error().message};
    return Distribution{*std::move(law)};
  }
  const auto spec = Spec::parse(text);
  if (!spec) return refuse(spec.error().message);
  if (text == laws::None::name) return Distribution{};
  laws::LawReader read{*spec};
  auto law = read_law(spec->name, read);
  if (!law) return refuse("unknown law");
  if (auto done = read.finish(); !done) return refuse(done.error().message);
  return Distribution{*std::move(law)};
}

std::string print(const Distribution& distribution) {
  return print_alternative(distribution.law());
}

}  // namespace starling
