/// The one grammar of flags, job files and code: `name:key=value,key=value,flag`.
///
///     auto spec = Spec::parse("pssp:s=4,beta=10").value();
///     SpecReader read(spec);
///     auto s = read.count("s", 4);
///     if (auto done = read.finish(); !done) return done.error();
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"

namespace starling {

/// A name and its options, as written. A positional option has an empty key.
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;

  /// Splits `text`; refuses an empty name, an empty option and a repeated key.
  static Result<Spec> parse(std::string_view text);

  bool operator==(const Spec&) const = default;
};

/// Takes typed options out of a Spec. finish() reports the first bad value, and refuses every
/// option that was never read.
class SpecReader {
 public:
  explicit SpecReader(const Spec& spec) : spec_(spec), taken_(spec.options.size(), false) {}

  /// A whole number in [least, most].
  std::uint64_t count(std::string_view key, std::uint64_t otherwise, std::uint64_t least = 0,
                      std::uint64_t most = UINT64_MAX);
  /// A whole number, or `inf` for UINT64_MAX.
  std::uint64_t count_or_inf(std::string_view key, std::uint64_t otherwise);
  /// A finite number in [least, most].
  double number(std::string_view key, double otherwise, double least, double most);
  /// Text as written.
  std::string text(std::string_view key, std::string_view otherwise);
  /// The text of `key` and the words behind it up to the next option with a key: `key=a,b,c`.
  std::vector<std::string> texts(std::string_view key);
  /// A duration, see parse_duration.
  std::chrono::nanoseconds duration(std::string_view key, std::chrono::nanoseconds otherwise);
  /// True where the bare word stands among the options.
  bool flag(std::string_view key);
  /// Returns the next option without a key; empty where none is left.
  std::string positional();
  /// True where `key=` was written.
  [[nodiscard]] bool has(std::string_view key) const;
  /// Records an error of the caller's, named after the spec.
  void refuse(std::string message);

  /// The first error, if any. Call last.
  [[nodiscard]] Result<void> finish();

 private:
  /// The written value of `key`, marked as taken; nullptr if absent.
  const std::string* take(std::string_view key);

  const Spec& spec_;
  std::vector<bool> taken_;
  std::vector<std::string> known_;
  std::string error_;
};

}  // namespace starling
