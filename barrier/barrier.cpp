#include "starling/barrier/barrier.hpp"

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling::barrier {
namespace {

/// Returns the name by which text calls the rule.
std::string label(const AnyRule& rule) {
  if (const auto* predicate = std::get_if<Predicate>(&rule)) return predicate->label;
  return std::visit([](const auto& r) { return std::string{r.name}; }, rule);
}

std::string summary(const AnyRule& rule) {
  return std::visit([](const auto& r) { return std::string{r.summary}; }, rule);
}

std::optional<Step> max_lag(const AnyRule& rule) {
  return std::visit([](const auto& r) { return r.max_lag(); }, rule);
}

std::optional<Step> max_lag_in_sample(const AnyRule& rule) {
  return std::visit(
      []<class R>(const R& r) {
        if constexpr (RuleWithRuns<R>) return r.max_lag_in_sample();
        return r.max_lag();
      },
      rule);
}

/// Returns true if a built-in barrier, or its sampled form, is called `name`.
bool is_built_in_name(const std::string& name) {
  return std::ranges::any_of(built_in_rules(), [&](const AnyRule& rule) {
    const std::string built_in = label(rule);
    return name == built_in || name == "p" + built_in || "p" + name == built_in;
  });
}

/// Returns the Error about the sampled form of a rule that has none.
Error no_sampled_form(const AnyRule& rule) {
  std::string reason = "it lets all workers go on together, once all of them wait; valid: ";
  if (is_tuned({rule})) reason = "it chooses its samples itself; valid: ";
  if (hands_in_early({rule}))
    reason = "all workers hand in when the first one has computed its batch; valid: ";
  reason += print({rule});
  if (!is_tuned({rule})) reason += ", or another sampled barrier, as " + print(sampled(Dssp{}, 2));
  return Error{"'p" + label(rule) + "': " + label(rule) + " has no sampled form, for " + reason};
}

/// Returns the names that parse() accepts.
std::vector<std::string> known_names(std::span<const Predicate> predicates) {
  std::vector<AnyRule> rules = built_in_rules();
  rules.insert(rules.end(), predicates.begin(), predicates.end());
  std::vector<std::string> names;
  for (const AnyRule& rule : rules) {
    names.push_back(label(rule));
    if (can_be_sampled(rule)) names.push_back("p" + label(rule));
  }
  return names;
}

/// Returns the rule called `name`, with the options that `reader` reads; nullopt for an unknown
/// name.
std::optional<AnyRule> find_rule(std::string_view name, SpecReader& reader,
                                 std::span<const Predicate> predicates) {
  if (const auto it = std::ranges::find(predicates, name, &Predicate::label);
      it != predicates.end())
    return *it;
  const auto rules = built_in_rules();
  const auto found = std::ranges::find(rules, name, label);
  if (found == rules.end()) return std::nullopt;
  return std::visit([&](const auto& rule) -> AnyRule { return rule.parse(reader); }, *found);
}

/// Reads the option `draw`: the weights with which a sampled barrier draws workers.
Weighting read_weighting(SpecReader& reader) {
  const auto weighting = parse_weighting(reader.text("draw", "uniform"));
  if (!weighting) reader.refuse(weighting.error().message);
  return weighting ? *weighting : Weighting::uniform;
}

}  // namespace

std::vector<AnyRule> built_in_rules() {
  std::vector<AnyRule> rules;
  for_each_alternative<AnyRule>([&]<Rule R>(R rule) { rules.emplace_back(std::move(rule)); });
  std::erase_if(rules, [](const auto& rule) { return std::holds_alternative<Predicate>(rule); });
  return rules;
}

bool admits(const Barrier& barrier, Step own_step, std::span<const Step> seen) {
  return std::visit([&](const auto& rule) { return rule.admits(own_step, seen); }, barrier.rule);
}

std::optional<Step> floor(const Barrier& barrier, Step own_step) {
  return std::visit([&](const auto& rule) { return rule.floor(own_step); }, barrier.rule);
}

bool needs_paces(const Barrier& barrier) {
  return std::visit(
      []<class R>(const R& rule) {
        if constexpr (std::same_as<R, Predicate>) return rule.needs_paces();
        return RuleWithRuns<R> || RuleWithRounds<R>;
      },
      barrier.rule);
}

bool has_rounds(const Barrier& barrier) {
  return std::visit([]<class R>(const R&) { return RuleWithRounds<R>; }, barrier.rule);
}

bool can_be_sampled(const AnyRule& rule) {
  return !always_passes({rule}) && !has_rounds({rule}) && !is_tuned({rule}) &&
         !hands_in_early({rule});
}

std::vector<Step> round(const Barrier& barrier, std::span<const Pace> workers) {
  return std::visit(
      [&]<class R>(const R& rule) -> std::vector<Step> {
        if constexpr (RuleWithRounds<R>) return rule.round(workers);
        return {};
      },
      barrier.rule);
}

Step run_to(const Barrier& barrier, const Pace& own, std::span<const Pace> others) {
  return std::visit(
      [&]<class R>(const R& rule) {
        if constexpr (RuleWithRuns<R>) return rule.run_to(own, others);
        return own.step;
      },
      barrier.rule);
}

std::optional<Step> promised_floor(const Barrier& barrier, Step own_step) {
  if (!needs_paces(barrier)) return floor(barrier, own_step);
  const auto lag_max = barrier.sample ? max_lag_in_sample(barrier.rule) : max_lag(barrier.rule);
  if (!lag_max) return std::nullopt;
  return own_step > *lag_max ? own_step - *lag_max : 0;
}

std::size_t seen_workers(const Barrier& barrier, std::size_t others) {
  if (always_passes(barrier)) return 0;
  if (is_tuned(barrier)) return std::min(Tuned::sample_max, others);
  return std::min(barrier.sample.value_or(others), others);
}

bool always_passes(const Barrier& barrier) {
  return barrier.sample == 0 || max_lag(barrier.rule) >= unlimited;
}

bool needs_every_step(const Barrier& barrier) {
  return !barrier.sample && !is_tuned(barrier) && !always_passes(barrier);
}

bool is_bsp(const Barrier& barrier) { return spread_bound(barrier) == Step{1}; }

std::optional<Step> spread_bound(const Barrier& barrier) {
  const auto lag_max = max_lag(barrier.rule);
  if (!lag_max || !needs_every_step(barrier)) return std::nullopt;
  return *lag_max + 1;
}

Result<void> check(const Predicate& predicate) {
  const auto refuse = [&](const std::string& reason) {
    return Error{"the label '" + predicate.label + "' of your predicate " + reason};
  };
  const auto is_separator = [](unsigned char c) {
    return c <= ' ' || c == ':' || c == ',' || c == '=';
  };
  if (predicate.label.empty() || std::ranges::any_of(predicate.label, is_separator))
    return refuse("cannot be written in a job; valid: one word without ':', ',' and '='");
  if (is_built_in_name(predicate.label))
    return refuse("is the name of a built-in barrier; valid: any other");
  return {};
}

Result<void> check(const Barrier& barrier, std::size_t workers) {
  if (const auto* predicate = std::get_if<Predicate>(&barrier.rule)) {
    if (auto valid = check(*predicate); !valid) return valid;
    if (!predicate->has_function())
      return Error{"barrier " + predicate->label + " has no function; make it by Predicate::make"};
  }
  // Options that are set in code are valid if text could set them.
  if (!std::holds_alternative<Predicate>(barrier.rule))
    if (auto valid = parse(print(barrier)); !valid) return std::move(valid).error();
  if (!barrier.sample && barrier.weighting != Weighting::uniform)
    return Error{"barrier " + print(barrier) + ": draw=" + print(barrier.weighting) +
                 " needs a sample; valid: draw=uniform, or a sampled barrier, as pssp:s=4,beta=2"};
  if (!barrier.sample || *barrier.sample < workers) return {};
  std::string valid = workers > 1 ? "0 to " + std::to_string(workers - 1) : "0";
  return Error{"barrier " + print(barrier) + ": beta=" + std::to_string(*barrier.sample) +
               (workers == 1
                    ? ", but a lone worker has no others"
                    : ", but each of " + std::to_string(workers) + " workers has " +
                          std::to_string(workers - 1) + (workers == 2 ? " other" : " others")) +
               "; valid: beta = " + valid + ", as in " +
               print(sampled(barrier.rule, workers - 1, barrier.weighting))};
}

Result<Barrier> parse(std::string_view text, std::span<const Predicate> predicates) {
  auto spec = Spec::parse(text);
  if (!spec) return std::move(spec).error().within("barrier");
  for (const Predicate& predicate : predicates)
    if (auto valid = check(predicate); !valid) return std::move(valid).error();
  SpecReader reader{*spec};
  Barrier barrier;
  auto rule = find_rule(spec->name, reader, predicates);
  if (!rule && spec->name.starts_with('p')) {
    rule = find_rule(std::string_view{spec->name}.substr(1), reader, predicates);
    if (rule && (is_tuned({*rule}) || has_rounds({*rule}) || hands_in_early({*rule})))
      return no_sampled_form(*rule).within("barrier");
    if (rule && !reader.has("beta"))
      reader.refuse("give the sample size, as in " + std::string{text} +
                    (spec->options.empty() ? ":" : ",") + "beta=2");
    if (rule) barrier.sample = reader.count("beta", 1);
    if (rule) barrier.weighting = read_weighting(reader);
  }
  if (!rule)
    return Error{"barrier: '" + spec->name + "' is unknown; " +
                 suggest(spec->name, known_names(predicates))};
  barrier.rule = *std::move(rule);
  if (auto done = reader.finish(); !done) return std::move(done).error().within("barrier");
  return barrier;
}

std::string print(const Barrier& barrier) {
  std::string text = (barrier.sample ? "p" : "") + label(barrier.rule);
  std::string options = std::visit([](const auto& r) { return r.options(); }, barrier.rule);
  if (barrier.sample) {
    if (!options.empty()) options += ',';
    options += "beta=" + std::to_string(*barrier.sample);
    if (barrier.weighting != Weighting::uniform) options += ",draw=" + print(barrier.weighting);
  }
  return options.empty() ? text : text + ":" + options;
}

std::vector<Description> descriptions(std::size_t beta) {
  std::vector<Description> list;
  const auto add = [&](const Barrier& barrier, const std::string& view) {
    list.push_back({print(barrier), summary(barrier.rule) + view, needs_every_step(barrier)});
  };
  for (const AnyRule& rule : built_in_rules()) {
    const char* view = "; sees all";
    if (always_passes({rule})) view = "";
    if (is_tuned({rule})) view = "; sees a sample";
    add({rule}, view);
    if (can_be_sampled(rule)) add(sampled(rule, beta), "; sees beta others");
  }
  return list;
}

}  // namespace starling::barrier
