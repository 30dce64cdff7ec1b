/// Probability distributions of durations, called laws: how long a step takes, how long a message
/// travels. Flags, job files and code write them in one grammar:
///
///     auto step_time = parse_distribution("gamma:mean=100ms,shape=2").value();
///     auto duration = step_time.draw(random);
///
/// To add a law, write one file in this folder and add it to Distribution::Law. Pure values; any
/// thread. All draws use starling::Random, so that a seed gives the same numbers with every
/// standard library.
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
  /// One of the laws, with its parameters.
  using Law = std::variant<laws::None, laws::Constant, laws::Exponential, laws::Uniform,
                           laws::Gamma, laws::Lognormal, laws::Pareto, laws::Trace>;

  /// Makes the law `none`, which always draws 0.
  Distribution() = default;
  Distribution(Law law) : law_(std::move(law)) {}

  /// Draws a duration; a draw of more than a year becomes a year.
  [[nodiscard]] Duration draw(Random& random) const;

  /// The mean, in seconds.
  [[nodiscard]] double mean() const;

  [[nodiscard]] const Law& law() const noexcept { return law_; }

  bool operator==(const Distribution&) const = default;

 private:
  Law law_;
};

/// Reads `none`, `const:20ms`, `exp:20ms`, `uniform:20ms`, `gamma:mean=20ms,shape=2`,
/// `lognormal:mean=20ms,sigma=0.5`, `pareto:mean=20ms,alpha=2.5`, and `trace:FILE`. Each line of
/// FILE is a duration, `20ms`, or a plain number of seconds; `#` begins a comment.
[[nodiscard]] Result<Distribution> parse_distribution(std::string_view text);

/// Returns text that parse_distribution reads back.
[[nodiscard]] std::string print(const Distribution& distribution);

}  // namespace starling
