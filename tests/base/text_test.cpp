#include "starling/base/text.hpp"

#include <gtest/gtest.h>

namespace starling {
namespace {

using namespace std::chrono_literals;

template <class Text>
concept CanSplit = requires(Text text) {
  split(static_cast<Text&&>(text), ',');
};

TEST(Text, SplitsAndTrims) {
  EXPECT_TRUE(split("", ',').empty());
  EXPECT_EQ(split("a,b,", ','), (std::vector<std::string_view>{"a", "b", ""}));
  static_assert(CanSplit<std::string&> && !CanSplit<std::string>, "the parts would dangle");
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
}

TEST(Text, QuoteEscapesControlCharactersAndLimitsTheLength) {
  EXPECT_EQ(quote("20 ms"), "'20 ms'");
  EXPECT_EQ(quote(std::string_view{"\x1b\0\n\xc2", 4}), "'\\x1b\\x00\\x0a\\xc2'");
  EXPECT_EQ(quote(std::string(1000, 'a')), "'" + std::string(60, 'a') + "...'");
}

TEST(Text, PrintCountUsesSingularAndPlural) {
  EXPECT_EQ(print_count(0, "seed"), "0 seeds");
  EXPECT_EQ(print_count(1, "seed"), "1 seed");
  EXPECT_EQ(print_count(2, "seed"), "2 seeds");
}

TEST(Text, ReadsDurationsWithUnitsOnly) {
  EXPECT_EQ(parse_duration("250us").value(), 250us);
  EXPECT_EQ(parse_duration("1.5s").value(), 1500ms);
  EXPECT_EQ(parse_duration("2min").value(), 2min);
  for (const char* text : {"", "5", "ms", "-1ms", "1 ms", "1e300h", "nan", "1msx"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST(Text, PrintsTheTextThatItParses) {
  for (const char* text : {"250us", "20ms", "1500ms", "2min", "1h", "0s"})
    EXPECT_EQ(print_duration(parse_duration(text).value()), text);
  for (const char* text : {"0.1", "1e-04", "64", "-2.5", "100000", "-999999999999999", "1e+15"})
    EXPECT_EQ(print_number(parse_number(text).value()), text);
  EXPECT_EQ(print_float(1'000'000.0F), "1000000");
  EXPECT_EQ(print_float(0.1F), "0.1");
  EXPECT_EQ(print_float(1e11F), "100000000000") << "not 99999997952, its exact value";
}

TEST(Text, PrintsSharesAsShortPercentages) {
  for (const char* text : {"7", "0.1", "100", "12.5", "1e-05", "0"})
    EXPECT_EQ(print_percent(parse_number(text).value() / 100), std::string{text} + "%");
  EXPECT_EQ(print_percent(1.0 / 3), "33.33333333333333%");
}

TEST(Text, RefusesTextThatIsNotANumber) {
  for (const char* text : {"", "x", "1x", "inf", "nan", "1e999", "+1", " 1"})
    EXPECT_FALSE(parse_number(text).ok()) << text;
  for (const char* text : {"", "-1", "1.0", "99999999999999999999"})
    EXPECT_FALSE(parse_count(text).ok()) << text;
}

TEST(Text, ParseCountNamesTheBoundThatIsMeant) {
  const auto error = [](const char* text, std::uint64_t most) {
    const auto count = parse_count(text, 1, most);
    return count ? std::to_string(*count) : count.error().message;
  };
  EXPECT_EQ(error("9", 9), "9");
  EXPECT_EQ(error("10", 9), "'10' must be a whole number >= 1 and <= 9");
  EXPECT_EQ(error("x", UINT64_MAX), "'x' must be a whole number >= 1");
  EXPECT_EQ(error("0", UINT64_MAX), "'0' must be a whole number >= 1");
  EXPECT_EQ(error("18446744073709551616", UINT64_MAX),
            "'18446744073709551616' must be a whole number >= 1 and <= 18446744073709551615");
}

TEST(Text, SuggestsOnlyANearName) {
  const std::vector<std::string> names{"bsp", "ssp", "pssp"};
  EXPECT_EQ(nearest("psp", names), "bsp");
  EXPECT_EQ(nearest("elephant", names), "");
}

TEST(Text, PrintableEscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(printable("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa6"),
            "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa6");
  EXPECT_EQ(printable("\x1b[2J\r\n\x7f"), "\\x1b[2J\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31mb"),
            "a\\xc2\\x9b"
            "31mb")
      << "U+009B begins a control sequence";
  EXPECT_EQ(printable("\x9b \xc3 \xe2\x82"), "\\x9b \\xc3 \\xe2\\x82") << "invalid UTF-8";
  EXPECT_EQ(printable(std::string(1, '\0')), "\\x00");
  EXPECT_EQ(printable("\xc0\x8a\xe0\x80\x8a"), "\\xc0\\x8a\\xe0\\x80\\x8a") << "overlong encodings";
}

}  // namespace
}  // namespace starling
