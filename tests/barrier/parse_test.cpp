#include <gtest/gtest.h>

#include <array>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {
namespace {

/// Passes only if it sees no worker.
const Predicate never =
    Predicate::make("never", [](Step, std::span<const Step> seen) { return seen.empty(); });
const std::array predicates{never};

/// Returns the part of an error message that lists every built-in barrier.
std::string valid_names() {
  std::string names = "valid";
  for (const auto& [form, summary, central_only] : descriptions())
    names += (names == "valid" ? ": " : ", ") + form.substr(0, form.find(':'));
  return names;
}

/// Returns the error of parsing `text`.
std::string parse_error(std::string_view text) {
  auto parsed = parse(text, predicates);
  return parsed ? "read as " + print(*parsed) : parsed.error().message;
}

TEST(Parse, ReadsEveryBarrier) {
  EXPECT_EQ(*parse("bsp"), Barrier{Bsp{}});
  EXPECT_EQ(*parse("ssp:s=7"), Barrier{Ssp{7}});
  EXPECT_EQ(*parse("asp"), Barrier{Asp{}});
  EXPECT_EQ(*parse("pbsp:beta=10"), sampled(Bsp{}, 10));
  EXPECT_EQ(*parse("pssp:s=7,beta=10"), sampled(Ssp{7}, 10));
  EXPECT_EQ(*parse(" pssp : beta = 10 , s = 7 "), sampled(Ssp{7}, 10));
}

TEST(Parse, ReadsTheWeightsOfASampledBarrier) {
  EXPECT_EQ(*parse("pssp:s=7,beta=10,draw=availability"),
            sampled(Ssp{7}, 10, Weighting::availability));
  EXPECT_EQ(*parse("pbsp:draw=speed,beta=2"), sampled(Bsp{}, 2, Weighting::speed));
  EXPECT_EQ(*parse("pbsp:beta=2,draw=uniform"), sampled(Bsp{}, 2));
  EXPECT_EQ(print(sampled(Ssp{4}, 2, Weighting::speed)), "pssp:s=4,beta=2,draw=speed");
  EXPECT_EQ(print(sampled(Ssp{4}, 2)), "pssp:s=4,beta=2");
  EXPECT_TRUE(is_weighted(*parse("pbsp:beta=2,draw=speed")));
  for (const char* text : {"pbsp:beta=2", "pbsp:beta=0,draw=speed", "pssp:s=inf,beta=2,draw=speed"})
    EXPECT_FALSE(is_weighted(*parse(text))) << text;
}

TEST(Parse, RefusesUnknownWeights) {
  EXPECT_EQ(parse_error("pssp:beta=2,draw=spede"),
            "barrier: pssp: draw=spede: is unknown; did you mean 'speed'? valid: uniform, "
            "availability, speed");
  EXPECT_EQ(parse_error("pssp:beta=2,draw="),
            "barrier: pssp: 'draw=' has no value; valid: KEY=VALUE");
}

TEST(Check, RefusesWeightsWithoutASample) {
  EXPECT_EQ(
      check(Barrier{Ssp{4}, std::nullopt, Weighting::speed}, 4).error().message,
      "barrier ssp:s=4: draw=speed needs a sample; valid: draw=uniform, or a sampled barrier, "
      "as pssp:s=4,beta=2");
  EXPECT_EQ(check(sampled(Ssp{4}, 4, Weighting::speed), 4).error().message,
            "barrier pssp:s=4,beta=4,draw=speed: beta=4, but each of 4 workers has 3 others; "
            "valid: beta = 0 to 3, as in pssp:s=4,beta=3,draw=speed");
}

TEST(Parse, DefaultsToAStalenessOfFour) {
  EXPECT_EQ(*parse("ssp"), Barrier{Ssp{4}});
  EXPECT_EQ(*parse("pssp:beta=2"), sampled(Ssp{4}, 2));
}

TEST(Parse, ReadsInfiniteStaleness) {
  EXPECT_EQ(*parse("ssp:s=inf"), Barrier{Ssp{finished}});
  EXPECT_EQ(print(*parse("pssp:s=inf,beta=3")), "pssp:s=inf,beta=3");
}

TEST(Parse, ReadsPrintedBarriers) {
  std::vector<AnyRule> rules = built_in_rules();
  rules.insert(rules.end(), {Ssp{0}, Ssp{2}, Ssp{finished}, never});
  for (const AnyRule& rule : rules) {
    EXPECT_EQ(*parse(print(Barrier{rule}), predicates), Barrier{rule}) << print({rule});
    if (!always_passes({rule}) && !can_be_sampled(rule)) continue;
    for (const std::size_t beta : {0U, 3U, 1'000'000U})
      EXPECT_EQ(*parse(print(sampled(rule, beta)), predicates), sampled(rule, beta))
          << print(sampled(rule, beta));
    for (const Weighting weighting : {Weighting::availability, Weighting::speed})
      EXPECT_EQ(*parse(print(sampled(rule, 3, weighting)), predicates), sampled(rule, 3, weighting))
          << print(sampled(rule, 3, weighting));
  }
}

TEST(Parse, FindsAPredicateByItsLabelAndSamplesItWithThePrefixP) {
  EXPECT_EQ(*parse("never", predicates), Barrier{never});
  EXPECT_EQ(*parse("pnever:beta=3", predicates), sampled(never, 3));
  EXPECT_EQ(print(sampled(never, 3)), "pnever:beta=3");
}

TEST(Parse, RefusesAnUnknownNameAndSuggestsTheNearest) {
  EXPECT_EQ(parse_error("bspp"),
            "barrier: 'bspp' is unknown; did you mean 'bsp'? " + valid_names() + ", never, pnever");
  EXPECT_EQ(parse("pmajority:beta=2").error().message,
            "barrier: 'pmajority' is unknown; " + valid_names());
}

TEST(Parse, SamplesAPredicateOfPaces) {
  const auto rule =
      Predicate::of_paces("near", [](const Pace&, std::span<const Pace>) { return true; });
  EXPECT_EQ(*parse("near", std::array{rule}), Barrier{rule});
  EXPECT_EQ(*parse("pnear:beta=2", std::array{rule}), sampled(rule, 2));
  EXPECT_TRUE(check({rule}, 4));
  EXPECT_TRUE(check(sampled(rule, 3), 4));
  EXPECT_FALSE(check(sampled(rule, 4), 4));
}

TEST(Parse, RefusesToSampleARuleWithRounds) {
  const std::string refusal =
      "barrier: 'pebsp': ebsp has no sampled form, for it lets all workers go on together, once "
      "all "
      "of them wait; valid: ebsp:ahead=15, or another sampled barrier, as "
      "pdssp:low=3,high=15,beta=2";
  EXPECT_EQ(parse("pebsp:beta=2").error().message, refusal);
  EXPECT_EQ(check(sampled(Ebsp{}, 2), 8).error().message, refusal);
}

TEST(Parse, KnowsOnlyTheGivenPredicates) {
  EXPECT_EQ(parse("never").error().message, "barrier: 'never' is unknown; " + valid_names());
  EXPECT_EQ(parse_error("predicate"),
            "barrier: 'predicate' is unknown; " + valid_names() + ", never, pnever");
}

TEST(Parse, RefusesLabelsThatTextCannotName) {
  const auto label_error = [](const std::string& label) {
    const auto rule = Predicate::make(label, [](Step, std::span<const Step>) { return true; });
    const auto checked = check(rule);
    EXPECT_EQ(bool(parse("asp", std::array{rule})), bool(checked)) << label;
    EXPECT_EQ(bool(check(sampled(rule, 1), 4)), bool(checked)) << label;
    return checked ? "accepted" : checked.error().message;
  };
  for (const char* label : {"", "a:b", "a,b", "a=b", "a b", "a\n"})
    EXPECT_EQ(label_error(label),
              "the label '" + std::string{label} +
                  "' of your predicate cannot be written in a job; valid: one word without "
                  "':', ',' and '='");
  for (const char* label : {"bsp", "pbsp", "ssp", "pssp", "asp", "pasp"})
    EXPECT_EQ(label_error(label),
              "the label '" + std::string{label} +
                  "' of your predicate is the name of a built-in barrier; valid: any other");
  for (const char* label : {"half", "p", "sp", "k-of_n", "\xc2\xbd", "predicate"})
    EXPECT_EQ(label_error(label), "accepted") << label;
}

TEST(Parse, RefusesAStalenessThatIsNoWholeNumber) {
  EXPECT_EQ(parse_error("ssp:s=-1"), "barrier: ssp: s=-1 must be a whole number >= 0, or inf");
  EXPECT_EQ(parse_error("ssp:s=1.5"), "barrier: ssp: s=1.5 must be a whole number >= 0, or inf");
  EXPECT_EQ(parse_error("pssp:s=x,beta=2"),
            "barrier: pssp: s=x must be a whole number >= 0, or inf");
}

TEST(Parse, RefusesASampleWithoutItsSize) {
  EXPECT_EQ(parse_error("pbsp"), "barrier: pbsp: give the sample size, as in pbsp:beta=2");
  EXPECT_EQ(parse_error("pssp:s=4"), "barrier: pssp: give the sample size, as in pssp:s=4,beta=2");
  EXPECT_EQ(parse_error("pnever"), "barrier: pnever: give the sample size, as in pnever:beta=2");
}

TEST(Parse, RefusesASampleSizeThatIsNoWholeNumber) {
  EXPECT_EQ(parse_error("pbsp:beta=-2"), "barrier: pbsp: beta=-2 must be a whole number >= 0");
  EXPECT_EQ(parse_error("pbsp:beta=inf"), "barrier: pbsp: beta=inf must be a whole number >= 0");
}

TEST(Parse, RefusesOptionsThatTheBarrierLacks) {
  EXPECT_EQ(parse_error("bsp:s=4"),
            "barrier: bsp: takes no options, but 's=4' is given; valid: bsp");
  EXPECT_EQ(parse_error("bsp:beta=4"),
            "barrier: bsp: takes no options, but 'beta=4' is given; valid: bsp");
  EXPECT_EQ(parse_error("ssp:beta=4"), "barrier: ssp: unknown option 'beta'; valid: s");
  EXPECT_EQ(parse_error("pbsp:betta=4,beta=2"),
            "barrier: pbsp: unknown option 'betta'; did you mean 'beta'? valid: beta, draw");
  EXPECT_EQ(parse_error("pbsp:beta=4,s=2"), "barrier: pbsp: unknown option 's'; valid: beta, draw");
  EXPECT_EQ(parse_error("ssp:s=4,draw=speed"), "barrier: ssp: unknown option 'draw'; valid: s");
  EXPECT_EQ(parse_error("never:s=4"),
            "barrier: never: takes no options, but 's=4' is given; valid: never");
}

TEST(Parse, RefusesTextThatBreaksTheGrammar) {
  EXPECT_EQ(parse_error(""), "barrier: '' has no name; valid: NAME or NAME:OPTIONS");
  EXPECT_EQ(parse_error("ssp:"), "barrier: 'ssp:' has no options after ':'; valid: ssp:OPTIONS");
  EXPECT_EQ(parse_error("ssp:s=1,s=2"), "barrier: ssp: 's' is given twice; valid: once");
}

/// Users need not write `pasp`, but print() returns it for a sampled ASP, so it must parse.
TEST(Parse, ReadsASampledAsp) {
  EXPECT_TRUE(always_passes(*parse("pasp:beta=2")));
  EXPECT_EQ(parse_error("pasp"), "barrier: pasp: give the sample size, as in pasp:beta=2");
  EXPECT_EQ(parse_error("psap:beta=2"), "barrier: 'psap' is unknown; did you mean 'pssp'? " +
                                            valid_names() + ", never, pnever");
}

TEST(Descriptions, HaveFormsThatParse) {
  for (const Description& description : descriptions()) {
    const auto parsed = parse(description.example);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(needs_every_step(*parsed), description.central_only) << description.example;
    EXPECT_FALSE(description.summary.empty());
  }
}

TEST(Descriptions, SayWhichWorkersTheBarrierSees) {
  EXPECT_EQ(descriptions()[0].example, "bsp");
  EXPECT_EQ(descriptions()[0].summary, "pass if no seen worker is behind; sees all");
  EXPECT_EQ(descriptions()[3].example, "pssp:s=4,beta=2");
  EXPECT_EQ(descriptions()[3].summary,
            "pass if no seen worker is over s steps behind; sees beta others");
  EXPECT_EQ(descriptions()[4].summary, "always pass");
}

}  // namespace
}  // namespace starling::barrier
