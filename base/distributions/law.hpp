/// The interface of a law of durations, and the reader of its options.
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

/// Draws durations. Every law but the trace is given by its mean, so that one law may replace
/// another.
template <class L>
concept LawRule = std::regular<L> && requires(const L law, Random& random) {
  /// The word that is parsed and printed.
  { L::name } -> std::convertible_to<std::string_view>;
  /// An example, as errors list it.
  { L::form } -> std::convertible_to<std::string_view>;
  /// Draws a duration, in nanoseconds.
  { law.draw(random) } -> std::same_as<double>;
  /// The mean, in nanoseconds.
  { law.mean_ns() } -> std::same_as<double>;
  /// The text behind the name and a colon; an empty text means there is none.
  { law.options() } -> std::convertible_to<std::string>;
};

/// Reads the mean, with or without its key, and the parameter of the law, if it has one.
class LawReader {
 public:
  explicit LawReader(const Spec& spec) : read_(spec) {}

  Duration mean() {
    std::string text = read_.text("mean", "");
    if (text.empty()) text = read_.positional();
    if (text.empty()) {
      lack("mean");
      return {};
    }
    const auto mean = parse_duration(text);
    if (mean) return *mean;
    read_.refuse(mean.error().message);
    return {};
  }

  double number(const char* key, double least, double most) {
    if (!read_.has(key)) lack(key);
    return read_.number(key, 1, least, most);
  }

  /// Reports a bad option before a missing one.
  Result<void> finish() {
    if (auto done = read_.finish(); !done || missing_.empty()) return done;
    read_.refuse(missing_);
    return read_.finish();
  }

 private:
  void lack(const char* key) {
    if (missing_.empty()) missing_ = "the " + std::string{key} + " is missing";
  }

  SpecReader read_;
  std::string missing_;
};

/// A law that is read by a LawReader, as all are but the absence of time and the trace.
template <class L>
concept ReadLaw = LawRule<L> && requires(LawReader& read) {
  { L::parse(read) } -> std::same_as<L>;
};

/// "mean=20ms,KEY=VALUE".
[[nodiscard]] inline std::string mean_and(Duration mean, const char* key, double value) {
  return "mean=" + print_duration(mean) + "," + key + "=" + print_number(value);
}

}  // namespace starling::laws
