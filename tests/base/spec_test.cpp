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

TEST(SpecReader, NamesTheBadValueAndTheValidOnes) {
  const Spec spec = Spec::parse("ssp:s=-1").value();
  SpecReader reader{spec};
  (void)reader.count("s", 4);
  EXPECT_EQ(reader.finish().error().message, "ssp: s=-1 must be a whole number >= 0");
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
  EXPECT_EQ(reader.finish().error().message, "bsp: takes no options, not 's'");
}

TEST(SpecReader, RefusesAValueOfAFlag) {
  const Spec spec = Spec::parse("sgd:nesterov=true").value();
  SpecReader reader{spec};
  EXPECT_FALSE(reader.flag("nesterov"));
  EXPECT_EQ(reader.finish().error().message,
            "sgd: nesterov=true: is a word without a value; valid: nesterov");
}

TEST(SpecReader, ReadsDurations) {
  const Spec spec = Spec::parse("interval:every=5ms").value();
  SpecReader reader{spec};
  EXPECT_EQ(reader.duration("every", 1s), 5ms);
}

}  // namespace
}  // namespace starling
