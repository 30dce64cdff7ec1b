#pragma once

#include <memory>
#include <vector>

#include "starling/base/distributions/law.hpp"

namespace starling::laws {

/// Draws one of the measured durations in a file, all equally likely.
struct Trace {
  static constexpr std::string_view name = "trace";
  static constexpr std::string_view example = "trace:FILE";

  std::string file;
  /// The file's durations; never empty.
  std::shared_ptr<const std::vector<Duration>> durations;

  /// Reads a file with one duration in each line; distribution.hpp defines the format.
  static Result<Trace> read(const std::string& file);
  [[nodiscard]] std::string options() const { return file; }

  [[nodiscard]] double draw(Random& random) const {
    return in_ns((*durations)[random.below(durations->size())]);
  }
  [[nodiscard]] double mean_ns() const;

  bool operator==(const Trace& other) const {
    return file == other.file && *durations == *other.durations;
  }
};

}  // namespace starling::laws
