/// How many copies of a job's model its nodes hold. Pure; any thread.
#pragma once

#include <string>

#include "starling/actor/wire/control.hpp"
#include "starling/app/cluster/cluster_view.hpp"

namespace starling::app {

/// The copies of each range that a job with these settings wants.
[[nodiscard]] std::size_t copies_wanted(const wire::JobSettings& settings);

/// Copies of the range that has fewest, of owners whose nodes answer.
[[nodiscard]] std::size_t copies_held(const JobView& job);

/// Copies that are being made: an owner does not hold its range yet. Owners that nobody has heard
/// count as holding theirs.
[[nodiscard]] std::size_t copies_incomplete(const JobView& job);

/// Tells changes in the number of copies.
class CopyWatch {
 public:
  /// A line where the configuration holds fewer copies than wanted, and another number than told
  /// last, or as many again; else empty.
  [[nodiscard]] std::string news(const core::Configuration& now, std::size_t wanted);

 private:
  std::size_t missing_ = 0;
};

}  // namespace starling::app
