/// Laws of durations: how long a step takes, how long a message is on its way. One grammar for
/// flags, job files and code:
///
///     auto law = parse_distribution("gamma:mean=100ms,shape=2").value();
///     auto took = law.draw(random);
///
/// A new law is one file here and one line below. Pure values; any thread. Draws come from
/// starling::Random only, so that a seed gives the same numbers with every standard library.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "starling/base/alternatives.hpp"
#include "starling/base/distributions/constant.hpp"
#include "starling/base/distributions/exponential.hpp"
#include "starling/base/distributions/gamma.hpp"
#include "starling/base/distributions/lognormal.hpp"
#include "starling/base/distributions/none.hpp"
#include "starling/base/distributions/pareto.hpp"
#include "starling/base/distributions/trace.hpp"
#include "starling/base/distributions/uniform.hpp"
#include "starling/base/random.hpp"
#include "starling/base/result.hpp"

namespace starling {

class Distribution {
 public:
  using Duration = laws::Duration;
  /// The closed set of laws.
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

/// Reads `none`, `const:20ms`, `exp:20ms`, `uniform:20ms`, `gamma:mean=20ms,shape=2`,
/// `lognormal:mean=20ms,sigma=0.5`, `pareto:mean=20ms,alpha=2.5`, and `trace:FILE`: a file with one
/// duration a line (`20ms`; a plain number is seconds), `#` beginning a comment.
[[nodiscard]] Result<Distribution> parse_distribution(std::string_view text);

/// The text that parse_distribution reads back.
[[nodiscard]] std::string print(const Distribution& distribution);

}  // namespace starling
