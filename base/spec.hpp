/// The grammar in which flags, job files and code write a value with options:
/// `name:key=value,key=value,flag`.
///
///     auto spec = Spec::parse("pssp:s=4,beta=10").value();
///     SpecReader reader(spec);
///     auto s = reader.count("s", 4);
///     if (auto done = reader.finish(); !done) return done.error();
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"

namespace starling {

/// A name and its options as text. An option is a pair of key and value; a positional option has an
/// empty key.
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;

  /// Splits `text`; refuses an empty name, an empty option and a repeated key.
  static Result<Spec> parse(std::string_view text);

  bool operator==(const Spec&) const = default;
};

/// Reads typed options from a Spec. Each function returns the value of option `key`, or `fallback`
/// if the option is absent or bad. finish() returns the first error, and refuses every option that
/// was never read.
class SpecReader {
 public:
  explicit SpecReader(const Spec& spec) : spec_(spec), was_read_(spec.options.size(), false) {}

  /// Reads a whole number in [least, most].
  std::uint64_t count(std::string_view key, std::uint64_t fallback, std::uint64_t least = 0,
                      std::uint64_t most = UINT64_MAX);
  /// Reads a whole number, or `inf`, which is UINT64_MAX.
  std::uint64_t count_or_inf(std::string_view key, std::uint64_t fallback);
  /// Reads a finite number in [least, most].
  double number(std::string_view key, double fallback, double least, double most);
  /// Reads text, unchanged.
  std::string text(std::string_view key, std::string_view fallback);
  /// Reads a list of words, `key=a,b,c`: the value of `key` and the positional options that follow
  /// it. Empty if the option is absent.
  std::vector<std::string> texts(std::string_view key);
  /// Reads a duration with its unit, such as 20ms; parse_duration() defines the format.
  std::chrono::nanoseconds duration(std::string_view key, std::chrono::nanoseconds fallback);
  /// Returns true if `key` stands among the options as a word, without `=VALUE`. Refuses
  /// `key=VALUE` and a word that is given twice.
  bool flag(std::string_view key);
  /// Reads the next positional option; empty if none is left.
  std::string positional();
  /// Returns true if `key=` is present.
  [[nodiscard]] bool has(std::string_view key) const;
  /// Records an error that the caller has found; finish() puts the spec's name in front of it.
  void refuse(std::string message);

  /// Returns the first error, if any. Call last.
  [[nodiscard]] Result<void> finish();

 private:
  /// Adds `key` to known_keys_, and returns what read_next() returns.
  const std::string* read_option(std::string_view key);
  /// Returns the text of the first unread option `key` and marks the option as read; nullptr if
  /// there is none.
  const std::string* read_next(std::string_view key);
  /// Returns the error for an option that was never read.
  [[nodiscard]] std::string explain_unread(const std::string& key, const std::string& value) const;

  const Spec& spec_;
  /// For each option of the spec: true if it was read.
  std::vector<bool> was_read_;
  /// The keys that the caller asked for, to suggest one for an unknown option.
  std::vector<std::string> known_keys_;
  /// The number of calls of positional(), which is the number of positional options that are valid.
  std::size_t positional_reads_ = 0;
  std::string error_;
};

}  // namespace starling
