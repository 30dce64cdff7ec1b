/// The interface of a law, which is a probability distribution of durations, and the reader of its
/// options.
#pragma once

#include <chrono>
#include <concepts>
#include <string>
#include <string_view>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling::laws {

using Duration = std::chrono::nanoseconds;

[[nodiscard]] inline double in_ns(Duration duration) {
  return static_cast<double>(duration.count());
}

/// A law. Users give the mean of every law but None and Trace, so that they can replace one law by
/// another.
template <class L>
concept DurationLaw = std::regular<L> && requires(const L law, Random& random) {
  /// The word that is parsed and printed.
  { L::name } -> std::convertible_to<std::string_view>;
  /// An example of the law as text, for errors.
  { L::example } -> std::convertible_to<std::string_view>;
  /// Draws a duration, in nanoseconds.
  { law.draw(random) } -> std::same_as<double>;
  /// The mean, in nanoseconds.
  { law.mean_ns() } -> std::same_as<double>;
  /// Prints the options, which follow the name and a colon; an empty text if there are none.
  { law.options() } -> std::convertible_to<std::string>;
};

/// Reads the options of a law: its mean, `20ms` or `mean=20ms`, and its second parameter, if it has
/// one.
class LawReader {
 public:
  explicit LawReader(const Spec& spec) : reader_(spec) {}

  /// Reads the mean. If it is missing or bad, finish() returns the error.
  Duration mean() {
    std::string text = reader_.text("mean", "");
    if (text.empty()) text = reader_.positional();
    if (text.empty()) {
      report_missing("mean");
      return {};
    }
    const auto mean = parse_duration(text);
    if (mean) return *mean;
    reader_.refuse(mean.error().message);
    return {};
  }

  /// Reads the parameter `key`, a number in [least, most].
  double number(const char* key, double least, double most) {
    if (!reader_.has(key)) report_missing(key);
    return reader_.number(key, 1, least, most);
  }

  /// Returns the first error. An error of a bad option hides that of a missing one.
  Result<void> finish() {
    if (auto done = reader_.finish(); !done || missing_error_.empty()) return done;
    reader_.refuse(missing_error_);
    return reader_.finish();
  }

 private:
  void report_missing(const char* key) {
    if (missing_error_.empty()) missing_error_ = "the " + std::string{key} + " is missing";
  }

  SpecReader reader_;
  std::string missing_error_;
};

/// A law that a LawReader reads: every law but None and Trace.
template <class L>
concept ParsableLaw = DurationLaw<L> && requires(LawReader& reader) {
  { L::parse(reader) } -> std::same_as<L>;
};

/// Prints the options of a law with one parameter: "mean=20ms,KEY=VALUE".
[[nodiscard]] inline std::string print_options(Duration mean, const char* key, double value) {
  return "mean=" + print_duration(mean) + "," + key + "=" + print_number(value);
}

}  // namespace starling::laws
