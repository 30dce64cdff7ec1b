/// Laws of durations: how long a step takes, how long a message is on its way. One grammar for
/// flags, job files and code:
///
///     auto law = parse_distribution("gamma:mean=100ms,shape=2").value();
///     auto took = law.draw(random);
///
/// Pure values; any thread. Draws come from starling::Random only, so that a seed gives the same
/// numbers with every standard library.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"

namespace starling {

/// Every law but the trace is given by its mean, so that one law may replace another.
namespace laws {

using Duration = std::chrono::nanoseconds;

/// No time at all.
struct None {
  bool operator==(const None&) const = default;
};
struct Constant {
  Duration mean{};
  bool operator==(const Constant&) const = default;
};
struct Exponential {
  Duration mean{};
  bool operator==(const Exponential&) const = default;
};
/// Uniform from 0 to twice the mean.
struct Uniform {
  Duration mean{};
  bool operator==(const Uniform&) const = default;
};
/// Shape 1 is the exponential law; the larger the shape, the more regular.
struct Gamma {
  Duration mean{};
  double shape = 2;
  bool operator==(const Gamma&) const = default;
};
/// sigma is the standard deviation of the logarithm.
struct Lognormal {
  Duration mean{};
  double sigma = 0.5;
  bool operator==(const Lognormal&) const = default;
};
/// P(X > x) = (least / x)^alpha for x >= least = mean (alpha - 1) / alpha. Below alpha 2 the
/// variance is infinite.
struct Pareto {
  Duration mean{};
  double alpha = 2.5;
  bool operator==(const Pareto&) const = default;
};
/// One of the measured durations of a file, each as likely as another.
struct Trace {
  std::string file;
  /// At least one.
  std::shared_ptr<const std::vector<Duration>> durations;
  bool operator==(const Trace& other) const {
    return file == other.file && *durations == *other.durations;
  }
};

}  // namespace laws

class Distribution {
 public:
  using Duration = laws::Duration;
  using Law = std::variant<laws::None, laws::Constant, laws::Exponential, laws::Uniform,
                           laws::Gamma, laws::Lognormal, laws::Pareto, laws::Trace>;

  /// No time at all.
  Distribution() = default;
  Distribution(Law law) : law_(std::move(law)) {}

  /// Draws a duration of at most a year.
  [[nodiscard]] Duration draw(Random& random) const;

  /// The mean, in seconds.
  [[nodiscard]] double mean() const;

  [[nodiscard]] const Law& law() const noexcept { return law_; }

  bool operator==(const Distribution&) const = default;

 private:
  Law law_;
};

/// Returns the duration nearest to `ns`, at most a year, so that sums of several stay in range.
[[nodiscard]] Distribution::Duration lasting(double ns);

/// Reads `none`, `const:20ms`, `exp:20ms`, `uniform:20ms`, `gamma:mean=20ms,shape=2`,
/// `lognormal:mean=20ms,sigma=0.5`, `pareto:mean=20ms,alpha=2.5`, and `trace:FILE`: a file with one
/// duration a line (`20ms`; a plain number is seconds), `#` beginning a comment.
[[nodiscard]] Result<Distribution> parse_distribution(std::string_view text);

/// The text that parse_distribution reads back.
[[nodiscard]] std::string print(const Distribution& distribution);

}  // namespace starling
