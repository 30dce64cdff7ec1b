#include "starling/base/spec.hpp"

#include <gtest/gtest.h>

namespace starling {
namespace {

using namespace std::chrono_literals;

TEST(Spec, ReadsNamesKeysFlagsAndPositionalOptions) {
  const Spec spec = Spec::parse("sgd:lr=0.1, momentum=0.9,nesterov").value();
  EXPECT_EQ(spec.name, "sgd");
  SpecReader reader{spec};
  EXPECT_EQ(reader.number("lr", 1, 0, 10), 0.1);
  EXPECT_EQ(reader.number("momentum", 0, 0, 1), 0.9);
  EXPECT_TRUE(reader.flag("nesterov"));
  EXPECT_TRUE(reader.finish().ok());

  const Spec files = Spec::parse("idx:images.gz,labels.gz").value();
  SpecReader names{files};
  EXPECT_EQ(names.positional(), "images.gz");
  EXPECT_EQ(names.positional(), "labels.gz");
  EXPECT_EQ(names.positional(), "");
  EXPECT_TRUE(names.finish().ok());
}

TEST(Spec, RefusesTextThatBreaksTheGrammar) {
  for (const char* text : {"", ":", "a:", "a:b=", "a:=b", "a:b=1,b=2", "a:b,,c"})
    EXPECT_FALSE(Spec::parse(text).ok()) << text;
}

TEST(Spec, SaysWhatBreaksTheGrammarAndWhatIsValid) {
  const auto error = [](const char* text) { return Spec::parse(text).error().message; };
  EXPECT_EQ(error(":s=4"), "':s=4' has no name; valid: NAME or NAME:OPTIONS");
  EXPECT_EQ(error("ssp:"), "'ssp:' has no options after ':'; valid: ssp:OPTIONS");
  EXPECT_EQ(error("ssp:=4"), "ssp: '=4' has no key; valid: KEY=VALUE");
  EXPECT_EQ(error("ssp:s="), "ssp: 's=' has no value; valid: KEY=VALUE");
  EXPECT_EQ(error("idx:a,"), "'idx:a,' has an empty option; valid: one ',' between two options");
  EXPECT_EQ(error("ssp:s=1,s=2"), "ssp: 's' is given twice; valid: once");
}

TEST(SpecReader, NamesTheBadValueAndTheValidOnes) {
  const Spec spec = Spec::parse("ssp:s=-1").value();
  SpecReader reader{spec};
  (void)reader.count("s", 4);
  EXPECT_EQ(reader.finish().error().message, "ssp: s=-1 must be a whole number >= 0");
}

TEST(SpecReader, NamesInfinityAsValidWhereItIs) {
  const Spec bad = Spec::parse("ssp:s=infinite").value();
  SpecReader reader{bad};
  EXPECT_EQ(reader.count_or_inf("s", 4), 4U);
  EXPECT_EQ(reader.finish().error().message, "ssp: s=infinite must be a whole number >= 0, or inf");

  const Spec good = Spec::parse("ssp:s=inf,t=7").value();
  SpecReader values{good};
  EXPECT_EQ(values.count_or_inf("s", 4), UINT64_MAX);
  EXPECT_EQ(values.count_or_inf("t", 4), 7U);
  EXPECT_EQ(values.count_or_inf("u", 4), 4U);
  EXPECT_TRUE(values.finish().ok());
}

TEST(SpecReader, SuggestsTheNearestOption) {
  const Spec spec = Spec::parse("pssp:betta=3").value();
  SpecReader reader{spec};
  (void)reader.count("s", 4);
  (void)reader.count("beta", 1);
  EXPECT_EQ(reader.finish().error().message,
            "pssp: unknown option 'betta'; did you mean 'beta'? valid: s, beta");
}

TEST(SpecReader, RefusesAnyOptionIfThereAreNone) {
  const Spec spec = Spec::parse("bsp:s=1").value();
  SpecReader reader{spec};
  EXPECT_EQ(reader.finish().error().message,
            "bsp: takes no options, but 's=1' is given; valid: bsp");
}

/// Returns the error for a reader that takes at most two values without a key, and these keys.
std::string error_of_two_values(const char* text, std::initializer_list<const char*> keys) {
  const Spec spec = Spec::parse(text).value();
  SpecReader reader{spec};
  (void)reader.positional();
  (void)reader.positional();
  for (const char* key : keys) (void)reader.text(key, "");
  return reader.finish().error().message;
}

TEST(SpecReader, RefusesValuesWithoutAKeyBeyondThoseThatWereRead) {
  EXPECT_EQ(error_of_two_values("idx:a,b,c", {}),
            "idx: 'c' is one value too many; valid: at most 2 values without a key");
  EXPECT_EQ(error_of_two_values("npy:a,b,c", {"label", "task"}),
            "npy: 'c' is one value too many; valid: at most 2 values without a key, and options: "
            "label, task");
}

TEST(SpecReader, ExplainsOtherOptionsBesideValuesWithoutAKey) {
  EXPECT_EQ(error_of_two_values("idx:a,b,n=1", {}),
            "idx: unknown option 'n'; valid: values without a key");
  EXPECT_EQ(error_of_two_values("npy:a,b,lable", {"label", "task"}),
            "npy: unknown option 'lable'; did you mean 'label'? valid: label, task");
  EXPECT_EQ(error_of_two_values("npy:a,b,task", {"label", "task"}),
            "npy: option 'task' has no value; valid: task=VALUE");
}

TEST(SpecReader, RefusesAValueOfAFlag) {
  const Spec spec = Spec::parse("sgd:nesterov=true").value();
  SpecReader reader{spec};
  EXPECT_FALSE(reader.flag("nesterov"));
  EXPECT_EQ(reader.finish().error().message,
            "sgd: nesterov=true must be 'nesterov' without a value, or be left out");
}

TEST(SpecReader, RefusesARepeatedFlag) {
  const Spec spec = Spec::parse("sgd:nesterov,nesterov").value();
  SpecReader reader{spec};
  EXPECT_TRUE(reader.flag("nesterov"));
  EXPECT_EQ(reader.finish().error().message, "sgd: 'nesterov' is given twice; valid: once");
}

TEST(SpecReader, ReadsDurations) {
  const Spec spec = Spec::parse("interval:every=5ms").value();
  SpecReader reader{spec};
  EXPECT_EQ(reader.duration("every", 1s), 5ms);
}

}  // namespace
}  // namespace starling
