/// Lists the keys of a job. Every key is a flag `--key` and a line `key = value` of a job file. A
/// new key is one entry in keys.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// The type of a value in a job file.
enum class ValueType {
  /// A string.
  text,
  /// A whole number.
  count,
  /// Any number.
  number,
  /// A number of seconds, or a string with a unit.
  duration,
  /// true or false. On the command line `--key` means true; `--key=false` overrides a job file.
  flag,
  /// A string or a list of strings. On the command line `--key` may be repeated.
  texts,
  /// A whole number or a string.
  count_or_text,
};

/// The input of Key::set: a value as text, the job in which to store it, and the program's
/// registry, because some values name entries of it.
struct KeyInput {
  Job& job;
  const Registry& registry;
  const std::string& text;
};

/// How a key of a job, or an option of a command, is written and shown in `--help`.
struct KeyDescription {
  std::string name;
  ValueType type = ValueType::text;
  /// The word that stands for the value in `--help`, like N in `--steps N`; empty for a flag.
  std::string value_name;
  std::string help;
  /// The heading of its group in `--help`.
  std::string group;
};

struct Key : KeyDescription {
  /// Stores a value in a job. An error says what is wrong with the value.
  Result<void> (*set)(const KeyInput& in) = nullptr;
};

[[nodiscard]] const std::vector<Key>& job_keys();

/// Returns the key of that name; null if there is none.
[[nodiscard]] const Key* find_key(std::string_view name);

[[nodiscard]] std::vector<std::string> key_names();

}  // namespace starling::program
