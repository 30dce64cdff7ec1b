#include "starling/barrier/barrier.hpp"

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling::barrier {
namespace {

/// Calls `visit(R{})` for each rule that text can name: all but a program's own predicates, which
/// text names by their labels.
template <class Visit>
void for_each_rule(Visit visit) {
  const auto visit_named = [&]<class R>(R rule) {
    if constexpr (!std::same_as<R, Predicate>) visit(rule);
  };
  [&]<class... Rs>(std::type_identity<std::variant<Rs...>>) {
    static_assert((Rule<Rs> && ...));
    (visit_named(Rs{}), ...);
  }(std::type_identity<AnyRule>{});
}

std::string label(const AnyRule& rule) {
  if (const auto* own = std::get_if<Predicate>(&rule)) return own->label;
  return std::visit([](const auto& r) { return std::string{r.name}; }, rule);
}

/// True where `label` is the name of a built-in barrier or of its sampled form.
bool is_taken(const std::string& label) {
  bool taken = false;
  for_each_rule([&]<class R>(R) {
    const std::string name{R::name};
    taken = taken || label == name || label == "p" + name || "p" + label == name;
  });
  return taken;
}

std::vector<std::string> known_names(std::span<const Predicate> own) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    names.emplace_back(name);
    if (name != Asp::name) names.push_back("p" + std::string{name});
  };
  for_each_rule([&]<class R>(R) { add(R::name); });
  for (const Predicate& rule : own) add(rule.label);
  return names;
}

/// Returns the rule called `name`, with its options taken from `read`.
std::optional<AnyRule> find_rule(std::string_view name, SpecReader& read,
                                 std::span<const Predicate> own) {
  if (const auto it = std::ranges::find(own, name, &Predicate::label); it != own.end()) return *it;
  std::optional<AnyRule> found;
  for_each_rule([&]<class R>(R) {
    if (name == R::name) found = R::parse(read);
  });
  return found;
}

}  // namespace

bool admits(const Barrier& barrier, Step own, std::span<const Step> seen) {
  return std::visit([&](const auto& rule) { return rule.admits(own, seen); }, barrier.rule);
}

std::optional<Step> floor(const Barrier& barrier, Step own) {
  return std::visit([&](const auto& rule) { return rule.floor(own); }, barrier.rule);
}

std::size_t observes(const Barrier& barrier, std::size_t others) {
  if (always_passes(barrier)) return 0;
  return std::min(barrier.sample.value_or(others), others);
}

bool always_passes(const Barrier& barrier) {
  const auto* ssp = std::get_if<Ssp>(&barrier.rule);
  return std::holds_alternative<Asp>(barrier.rule) || barrier.sample == 0 ||
         (ssp != nullptr && ssp->staleness >= finished);
}

bool needs_every_step(const Barrier& barrier) { return !barrier.sample && !always_passes(barrier); }

bool is_bsp(const Barrier& barrier) { return spread_bound(barrier) == Step{1}; }

std::optional<Step> spread_bound(const Barrier& barrier) {
  if (!needs_every_step(barrier)) return std::nullopt;
  if (std::holds_alternative<Bsp>(barrier.rule)) return 1;
  if (const auto* ssp = std::get_if<Ssp>(&barrier.rule)) return ssp->staleness + 1;
  return std::nullopt;
}

Result<void> check(const Predicate& rule) {
  const auto refuse = [&](const std::string& why) {
    return Error{"the label '" + rule.label + "' of a barrier of your own " + why};
  };
  const auto parts = [](unsigned char c) { return c <= ' ' || c == ':' || c == ',' || c == '='; };
  if (rule.label.empty() || std::ranges::any_of(rule.label, parts))
    return refuse("cannot be written in a job; valid: one word without ':', ',' and '='");
  if (is_taken(rule.label)) return refuse("is a built-in barrier's; valid: any other");
  return {};
}

Result<void> check(const Barrier& barrier, std::size_t workers) {
  if (const auto* own = std::get_if<Predicate>(&barrier.rule))
    if (auto valid = check(*own); !valid) return valid;
  if (!barrier.sample || *barrier.sample < workers) return {};
  std::string valid = workers > 1 ? "0 to " + std::to_string(workers - 1) : "0";
  return Error{"barrier " + print(barrier) + ": beta=" + std::to_string(*barrier.sample) +
               " others cannot be drawn among " + std::to_string(workers) +
               (workers == 1 ? " worker" : " workers") + "; valid: beta = " + valid + ", as in " +
               print(sampled(barrier.rule, workers - 1))};
}

Result<Barrier> parse(std::string_view text, std::span<const Predicate> own) {
  auto spec = Spec::parse(text);
  if (!spec) return std::move(spec).error().within("barrier");
  for (const Predicate& rule : own)
    if (auto valid = check(rule); !valid) return std::move(valid).error();
  SpecReader read{*spec};
  Barrier barrier;
  auto rule = find_rule(spec->name, read, own);
  if (!rule && spec->name.starts_with('p')) {
    rule = find_rule(std::string_view{spec->name}.substr(1), read, own);
    if (rule && !read.has("beta"))
      read.refuse("give the sample size, as in " + spec->name + ":beta=2");
    if (rule) barrier.sample = read.count("beta", 1);
  }
  if (!rule)
    return Error{"barrier: '" + spec->name + "' is unknown; " +
                 suggest(spec->name, known_names(own))};
  barrier.rule = *std::move(rule);
  if (auto done = read.finish(); !done) return std::move(done).error().within("barrier");
  return barrier;
}

std::string print(const Barrier& barrier) {
  std::string text = (barrier.sample ? "p" : "") + label(barrier.rule);
  std::string options = std::visit([](const auto& r) { return r.options(); }, barrier.rule);
  if (barrier.sample) {
    if (!options.empty()) options += ',';
    options += "beta=" + std::to_string(*barrier.sample);
  }
  return options.empty() ? text : text + ":" + options;
}

std::vector<Description> descriptions() {
  std::vector<Description> all;
  for_each_rule([&]<class R>(R rule) {
    const bool asp = std::same_as<R, Asp>;
    all.push_back({print({rule}), std::string{R::summary} + (asp ? "" : ", of all workers"), !asp});
    if (!asp)
      all.push_back(
          {print(sampled(rule, 2)), std::string{R::summary} + ", of beta random workers", false});
  });
  return all;
}

}  // namespace starling::barrier
