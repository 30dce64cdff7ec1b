#include "starling/base/distributions/distribution.hpp"

#include <optional>

#include "starling/base/to_duration.hpp"

namespace starling {
namespace {

using Law = Distribution::Law;

/// Returns the law called `name` with the options from `reader`; nullopt for an unknown name, and
/// for None and Trace, which have no such options.
std::optional<Law> read_law(std::string_view name, laws::LawReader& reader) {
  std::optional<Law> found;
  for_each_alternative<Law>([&]<laws::DurationLaw L>(const L&) {
    if constexpr (!std::same_as<L, laws::None> && !std::same_as<L, laws::Trace>) {
      static_assert(laws::ParsableLaw<L>);
      if (name == L::name) found = L::parse(reader);
    }
  });
  return found;
}

}  // namespace

Distribution::Duration Distribution::draw(Random& random) const {
  return std::visit([&](const auto& law) { return to_duration(law.draw(random)); }, law_);
}

double Distribution::mean() const {
  return std::visit([](const auto& law) { return law.mean_ns(); }, law_) / 1e9;
}

Result<Distribution> parse_distribution(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    const bool says_valid = why.find("; valid: ") != std::string::npos;
    return Error{"distribution " + quote(text) + ": " + why +
                 (says_valid ? "; laws: " : "; valid: ") + examples_of<Law>(", ")};
  };
  constexpr std::string_view trace = "trace:";
  if (text.starts_with(trace) && text.size() > trace.size()) {
    // A file's name may contain the grammar's separators, so Spec::parse() must not split it.
    auto law = laws::Trace::read(std::string{text.substr(trace.size())});
    if (!law) return Error{"distribution " + std::string{trace} + law.error().message};
    return Distribution{*std::move(law)};
  }
  const auto spec = Spec::parse(text);
  if (!spec) return refuse(spec.error().message);
  if (text == laws::None::name) return Distribution{};
  laws::LawReader reader{*spec};
  auto law = read_law(spec->name, reader);
  if (!law) return refuse("unknown law");
  if (auto done = reader.finish(); !done) return refuse(done.error().message);
  return Distribution{*std::move(law)};
}

std::string print(const Distribution& distribution) {
  return print_alternative(distribution.law());
}

}  // namespace starling
