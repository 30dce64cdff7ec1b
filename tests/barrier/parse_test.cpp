#include <gtest/gtest.h>

#include <array>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {
namespace {

const Predicate never =
    Predicate::make("never", [](Step, std::span<const Step> seen) { return seen.empty(); });
const std::array own{never};

/// The end of a refusal that names every barrier.
std::string valid_names() {
  std::string names = "valid";
  for (const auto& [form, summary, central_only] : descriptions())
    names += (names == "valid" ? ": " : ", ") + form.substr(0, form.find(':'));
  return names;
}

std::string refusal(std::string_view text) {
  auto parsed = parse(text, own);
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

TEST(Parse, ToleratesFourStepsWhereNothingIsSaid) {
  EXPECT_EQ(*parse("ssp"), Barrier{Ssp{4}});
  EXPECT_EQ(*parse("pssp:beta=2"), sampled(Ssp{4}, 2));
}

TEST(Parse, ReadsInfiniteStaleness) {
  EXPECT_EQ(*parse("ssp:s=inf"), Barrier{Ssp{finished}});
  EXPECT_EQ(print(*parse("pssp:s=inf,beta=3")), "pssp:s=inf,beta=3");
}

TEST(Parse, ReadsItsOwnPrint) {
  std::vector<AnyRule> rules = named_rules();
  rules.insert(rules.end(), {Ssp{0}, Ssp{2}, Ssp{finished}, never});
  for (const AnyRule& rule : rules)
    for (const Barrier& barrier :
         {Barrier{rule}, sampled(rule, 0), sampled(rule, 3), sampled(rule, 1000000)})
      EXPECT_EQ(*parse(print(barrier), own), barrier) << print(barrier);
}

TEST(Parse, FindsAPredicateByItsLabelAndSamplesItBehindAP) {
  EXPECT_EQ(*parse("never", own), Barrier{never});
  EXPECT_EQ(*parse("pnever:beta=3", own), sampled(never, 3));
  EXPECT_EQ(print(sampled(never, 3)), "pnever:beta=3");
}

TEST(Parse, RefusesAnUnknownNameAndSaysTheNearest) {
  EXPECT_EQ(refusal("bspp"),
            "barrier: 'bspp' is unknown; did you mean 'bsp'? " + valid_names() + ", never, pnever");
  EXPECT_EQ(parse("pquorum:beta=2").error().message,
            "barrier: 'pquorum' is unknown; " + valid_names());
}

TEST(Parse, KnowsAPredicateOnlyWhereItIsGiven) {
  EXPECT_EQ(parse("never").error().message, "barrier: 'never' is unknown; " + valid_names());
  EXPECT_EQ(refusal("predicate"),
            "barrier: 'predicate' is unknown; " + valid_names() + ", never, pnever");
}

TEST(Parse, RefusesLabelsThatCouldNotBeFound) {
  const auto refusal_of = [](const std::string& label) {
    const auto rule = Predicate::make(label, [](Step, std::span<const Step>) { return true; });
    const auto checked = check(rule);
    EXPECT_EQ(bool(parse("asp", std::array{rule})), bool(checked)) << label;
    EXPECT_EQ(bool(check(sampled(rule, 1), 4)), bool(checked)) << label;
    return checked ? "taken" : checked.error().message;
  };
  for (const char* label : {"", "a:b", "a,b", "a=b", "a b", "a\n"})
    EXPECT_EQ(refusal_of(label),
              "the label '" + std::string{label} +
                  "' of a barrier of your own cannot be written in a job; valid: one word without "
                  "':', ',' and '='");
  for (const char* label : {"bsp", "pbsp", "ssp", "pssp", "asp", "pasp"})
    EXPECT_EQ(refusal_of(label),
              "the label '" + std::string{label} +
                  "' of a barrier of your own is a built-in barrier's; valid: any other");
  for (const char* label : {"half", "p", "sp", "k-of_n", "\xc2\xbd", "predicate"})
    EXPECT_EQ(refusal_of(label), "taken") << label;
}

TEST(Parse, RefusesAStalenessThatIsNoCount) {
  EXPECT_EQ(refusal("ssp:s=-1"), "barrier: ssp: s=-1 must be a whole number >= 0");
  EXPECT_EQ(refusal("ssp:s=1.5"), "barrier: ssp: s=1.5 must be a whole number >= 0");
  EXPECT_EQ(refusal("pssp:s=x,beta=2"), "barrier: pssp: s=x must be a whole number >= 0");
}

TEST(Parse, RefusesASampleWithoutItsSize) {
  EXPECT_EQ(refusal("pbsp"), "barrier: pbsp: give the sample size, as in pbsp:beta=2");
  EXPECT_EQ(refusal("pssp:s=4"), "barrier: pssp: give the sample size, as in pssp:beta=2");
  EXPECT_EQ(refusal("pnever"), "barrier: pnever: give the sample size, as in pnever:beta=2");
}

TEST(Parse, RefusesASampleSizeThatIsNoCount) {
  EXPECT_EQ(refusal("pbsp:beta=-2"), "barrier: pbsp: beta=-2 must be a whole number >= 0");
  EXPECT_EQ(refusal("pbsp:beta=inf"), "barrier: pbsp: beta=inf must be a whole number >= 0");
}

TEST(Parse, RefusesOptionsTheBarrierDoesNotHave) {
  EXPECT_EQ(refusal("bsp:s=4"), "barrier: bsp: takes no options, not 's'");
  EXPECT_EQ(refusal("bsp:beta=4"), "barrier: bsp: takes no options, not 'beta'");
  EXPECT_EQ(refusal("ssp:beta=4"), "barrier: ssp: unknown option 'beta'; valid: s");
  EXPECT_EQ(refusal("pbsp:betta=4,beta=2"),
            "barrier: pbsp: unknown option 'betta'; did you mean 'beta'? valid: beta");
  EXPECT_EQ(refusal("pbsp:beta=4,s=2"), "barrier: pbsp: unknown option 's'; valid: beta");
  EXPECT_EQ(refusal("never:s=4"), "barrier: never: takes no options, not 's'");
}

TEST(Parse, RefusesWhatIsNoSpec) {
  EXPECT_EQ(refusal(""), "barrier: '' has no name");
  EXPECT_EQ(refusal("ssp:"), "barrier: 'ssp:' has nothing behind its colon");
  EXPECT_EQ(refusal("ssp:s=1,s=2"), "barrier: 'ssp:s=1,s=2' gives 's' twice");
}

/// No user needs to write it, but the printed form of a sampled ASP must parse again.
TEST(Parse, TakesASampleOfAspForAsp) {
  EXPECT_TRUE(always_passes(*parse("pasp:beta=2")));
  EXPECT_EQ(refusal("pasp"), "barrier: pasp: give the sample size, as in pasp:beta=2");
  EXPECT_EQ(refusal("psap:beta=2"), "barrier: 'psap' is unknown; did you mean 'pssp'? " +
                                        valid_names() + ", never, pnever");
}

TEST(Descriptions, AreFormsThatParse) {
  const auto all = descriptions();
  for (const Description& description : all) {
    const auto parsed = parse(description.form);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(needs_every_step(*parsed), description.central_only) << description.form;
    EXPECT_FALSE(description.summary.empty());
  }
}

TEST(Descriptions, SayWhomTheBarrierSees) {
  EXPECT_EQ(descriptions()[0].form, "bsp");
  EXPECT_EQ(descriptions()[0].summary, "nobody seen is behind me, of all workers");
  EXPECT_EQ(descriptions()[3].form, "pssp:s=4,beta=2");
  EXPECT_EQ(descriptions()[3].summary,
            "nobody seen is more than s steps behind me, of beta random workers");
  EXPECT_EQ(descriptions()[4].summary, "always pass");
}

}  // namespace
}  // namespace starling::barrier
