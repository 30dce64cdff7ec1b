/// Compares random numbers of each distribution with its exact mean, variance and quantiles.
#include "starling/base/distributions/distribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numbers>

#include "starling/base/to_duration.hpp"
#include "tests/barrier/statistics.hpp"

namespace starling {
namespace {

using namespace std::chrono_literals;

double seconds(Distribution::Duration duration) {
  return static_cast<double>(duration.count()) / 1e9;
}

/// A distribution and its exact mean, standard deviation and quantiles, in seconds.
struct LawCase {
  /// The text that parse_distribution() reads.
  const char* text;
  double mean;
  double sd;
  double quantile_25;  // P(X <= quantile_25) = 0.25
  double quantile_95;  // P(X <= quantile_95) = 0.95
};

class Law : public testing::TestWithParam<LawCase> {};

TEST_P(Law, HasItsMeanVarianceAndQuantiles) {
  const auto& exact = GetParam();
  const auto law = parse_distribution(exact.text).value();
  EXPECT_DOUBLE_EQ(law.mean(), exact.mean);
  constexpr std::uint64_t draws = 200'000;
  Random random{7};
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  std::uint64_t below_quantile_25 = 0;
  std::uint64_t below_quantile_95 = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const double x = seconds(law.draw(random));
    const double deviation = x - exact.mean;
    sum += deviation;
    squares += deviation * deviation;
    fourths += deviation * deviation * deviation * deviation;
    below_quantile_25 += x <= exact.quantile_25 ? 1U : 0U;
    below_quantile_95 += x <= exact.quantile_95 ? 1U : 0U;
  }
  constexpr double n = draws;
  EXPECT_NEAR(sum / n, 0, 5 * exact.sd / std::sqrt(n));
  const double variance = squares / n;
  const double variance_error = std::sqrt((fourths / n - variance * variance) / n);
  EXPECT_NEAR(variance, exact.sd * exact.sd, 5 * variance_error);
  EXPECT_LT(std::abs(deviations(below_quantile_25, draws, 0.25)), 5);
  EXPECT_LT(std::abs(deviations(below_quantile_95, draws, 0.95)), 5);
}

/// The quantile q of a gamma distribution of shape 2 solves 1 - (1 + x) e^-x = q, with x in units
/// of the scale. That of shape 1/2 is the mean times z^2, where a standard normal variable is
/// between -z and z with probability q. That of a Pareto distribution is x_min / (1 - q)^(1 /
/// alpha).
INSTANTIATE_TEST_SUITE_P(
    Laws, Law,
    testing::Values(
        LawCase{"exp:100ms", 0.1, 0.1, -0.1 * std::log(0.75), -0.1 * std::log(0.05)},
        LawCase{"uniform:100ms", 0.1, 0.2 / std::sqrt(12.0), 0.05, 0.19},
        LawCase{"gamma:mean=100ms,shape=2", 0.1, 0.1 / std::numbers::sqrt2, 0.05 * 0.961278763,
                0.05 * 4.743864518},
        LawCase{"gamma:mean=100ms,shape=0.5", 0.1, 0.1 * std::numbers::sqrt2,
                0.1 * 0.318639364 * 0.318639364, 0.1 * 1.959963985 * 1.959963985},
        LawCase{"gamma:mean=100ms,shape=1", 0.1, 0.1, -0.1 * std::log(0.75), -0.1 * std::log(0.05)},
        LawCase{"lognormal:mean=100ms,sigma=0.5", 0.1, 0.1 * std::sqrt(std::exp(0.25) - 1),
                0.1 * std::exp(-0.125 - 0.5 * 0.674489750),
                0.1 * std::exp(-0.125 + 0.5 * 1.644853627)},
        LawCase{"pareto:mean=100ms,alpha=6", 0.1, 0.1 / std::sqrt(24.0),
                0.1 * 5 / 6 * std::pow(0.75, -1.0 / 6), 0.1 * 5 / 6 * std::pow(0.05, -1.0 / 6)}));

TEST(Distribution, DrawsTheMeanIfNothingIsRandom) {
  Random random{1};
  EXPECT_EQ(Distribution{}.draw(random), 0ns);
  EXPECT_EQ(Distribution{}.mean(), 0);
  EXPECT_EQ(parse_distribution("const:20ms")->draw(random), 20ms);
  EXPECT_EQ(parse_distribution("lognormal:mean=20ms,sigma=0")->draw(random), 20ms);
}

TEST(Distribution, RepeatsWithTheSameSeedAndDrawsAtMostAYear) {
  const auto law = parse_distribution("pareto:mean=8000h,alpha=1.001").value();
  Random one{3};
  Random two{3};
  for (int i = 0; i < 100'000; ++i) {
    const auto drawn = law.draw(one);
    ASSERT_EQ(drawn, law.draw(two));
    ASSERT_GT(drawn, 0ns);
    ASSERT_LE(drawn, 24h * 365);
  }
  EXPECT_EQ(to_duration(1e30), 24h * 365);
  EXPECT_EQ(to_duration(1.6), 2ns);
}

TEST(Distribution, PrintsTheTextThatItParses) {
  for (const char* text :
       {"none", "const:20ms", "exp:100ms", "uniform:1500us", "gamma:mean=100ms,shape=2",
        "lognormal:mean=1s,sigma=0.25", "pareto:mean=2min,alpha=1.5"}) {
    const auto law = parse_distribution(text);
    ASSERT_TRUE(law) << text;
    EXPECT_EQ(print(*law), text);
    EXPECT_EQ(*parse_distribution(print(*law)), *law);
  }
  EXPECT_EQ(print(*parse_distribution("gamma:100ms,shape=2")), "gamma:mean=100ms,shape=2");
  EXPECT_EQ(print(*parse_distribution("exp:mean=100ms")), "exp:100ms");
}

TEST(Distribution, ParsesTheExampleOfEveryLaw) {
  for_each_alternative<Distribution::Law>([]<class L>(const L&) {
    if constexpr (!std::same_as<L, laws::Trace>) {
      const auto law = parse_distribution(L::example).value();
      EXPECT_TRUE(std::holds_alternative<L>(law.law())) << L::example;
      EXPECT_EQ(print(law), L::example);
      EXPECT_EQ(law.mean(), (std::same_as<L, laws::None> ? 0 : 0.02)) << L::example;
    }
  });
}

struct InvalidText {
  const char* text;
  const char* reason;
};

TEST(Distribution, RefusesBadTextAndListsTheLaws) {
  for (const auto& [text, reason] :
       {InvalidText{"", "has no name"}, InvalidText{"exp", "the mean is missing"},
        InvalidText{"exp:20", "'20' is not a"}, InvalidText{"exp:-1ms", "'-1ms' is not a"},
        InvalidText{"expo:20ms", "unknown law"},
        InvalidText{"exp:20ms,shape=2", "unknown option 'shape'; valid: mean"},
        InvalidText{"gamma:mean=1s", "shape is missing"},
        InvalidText{"gamma:mean=1s,shape=0", "shape=0 must be"},
        InvalidText{"pareto:mean=1s,alpha=1", "alpha=1"},
        InvalidText{"lognormal:mean=1s,sigma=-1", "sigma=-1"},
        InvalidText{"gamma:mean=1ms,shpe=3", "unknown option 'shpe'; did you mean 'shape'?"},
        InvalidText{"exp:maen=20ms", "unknown option 'maen'; did you mean 'mean'?"},
        InvalidText{"exp:9000000h", "'9000000h' is too long; valid: at most 285 years"},
        InvalidText{"none:1s", "unknown law"}, InvalidText{"trace", "unknown law"},
        InvalidText{"gamma:mean=1s,mean=2s", "twice"}}) {
    const auto law = parse_distribution(text);
    ASSERT_FALSE(law) << text;
    EXPECT_NE(law.error().message.find(reason), std::string::npos) << law.error().message;
    EXPECT_NE(law.error().message.find("none, const:20ms, exp:20ms"), std::string::npos);
  }
}

TEST(Distribution, SaysOnceInAnErrorWhatIsValid) {
  const std::string laws =
      "none, const:20ms, exp:20ms, uniform:20ms, gamma:mean=20ms,shape=2, "
      "lognormal:mean=20ms,sigma=0.5, pareto:mean=20ms,alpha=2.5, trace:FILE";
  EXPECT_EQ(parse_distribution("expo:20ms").error().message,
            "distribution 'expo:20ms': unknown law; valid: " + laws);
  EXPECT_EQ(
      parse_distribution("exp:20ms,shape=2").error().message,
      "distribution 'exp:20ms,shape=2': exp: unknown option 'shape'; valid: mean; laws: " + laws);
}

class Trace : public testing::Test {
 protected:
  /// Writes `text` to the trace file and returns the text of a distribution that draws its lines.
  [[nodiscard]] std::string write(const std::string& text) const {
    std::ofstream{file} << text;
    return "trace:" + file;
  }
  /// Returns the error of reading a trace file with this text.
  [[nodiscard]] std::string error_of(const std::string& text) const {
    const auto law = parse_distribution(write(text));
    return law ? "accepted" : law.error().message;
  }
  const std::string file = testing::TempDir() +
                           testing::UnitTest::GetInstance()->current_test_info()->name() +
                           ",a:b.txt";
};

TEST_F(Trace, DrawsEachLineEquallyOften) {
  const auto law =
      parse_distribution(write("# measured\n\n20ms # first\n 0.5 \n2e-1\r\n20ms")).value();
  EXPECT_DOUBLE_EQ(law.mean(), 0.185);
  EXPECT_EQ(print(law), "trace:" + file);
  EXPECT_EQ(*parse_distribution(print(law)), law);
  Random random{1};
  std::uint64_t draws_of_20ms = 0;
  std::uint64_t draws_of_500ms = 0;
  constexpr int draws = 10'000;
  for (int i = 0; i < draws; ++i) {
    const auto drawn = law.draw(random);
    ASSERT_TRUE(drawn == 20ms || drawn == 500ms || drawn == 200ms);
    draws_of_20ms += drawn == 20ms ? 1U : 0U;
    draws_of_500ms += drawn == 500ms ? 1U : 0U;
  }
  EXPECT_LT(std::abs(deviations(draws_of_20ms, draws, 0.5)), 5);
  EXPECT_LT(std::abs(deviations(draws_of_500ms, draws, 0.25)), 5);
}

TEST_F(Trace, NamesFileAndLineOfAnError) {
  const std::string location = "distribution trace:" + file;
  EXPECT_EQ(error_of("20ms\n# comment\nfast\n"),
            location + ":3: 'fast' is neither a duration like 20ms nor seconds like 0.02");
  EXPECT_EQ(error_of("-1\n"),
            location + ":1: '-1' is neither a duration like 20ms nor seconds like 0.02");
  EXPECT_EQ(error_of("1e300\n").substr(0, location.size() + 3), location + ":1:");
  EXPECT_EQ(error_of("\x1b[2J\xff" + std::string(1000, 'x')),
            location + ":1: '\\x1b[2J\\xff" + std::string(55, 'x') +
                "...' is neither a duration like 20ms nor seconds like 0.02");
  EXPECT_EQ(error_of("# nothing\n"), location + ": holds no duration");
  EXPECT_EQ(parse_distribution("trace:/no/such/file").error().message,
            "distribution trace:/no/such/file: no such file");
  EXPECT_FALSE(parse_distribution("trace:" + testing::TempDir())) << "a folder";
  EXPECT_EQ(parse_distribution("trace:/dev/zero").error().message,
            "distribution trace:/dev/zero: is a character device; valid: a regular file or a pipe");
}

}  // namespace
}  // namespace starling
