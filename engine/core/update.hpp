/// The ranges that a worker reads in a step, and the update that it computes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "starling/barrier/descent.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/slice.hpp"

namespace starling::core {

/// A range that a worker reads in a step, or rows of it.
struct RangeRows {
  RangeId range;
  Rows rows;
};

/// The update that a worker computed in one step: one part for each range that it changes.
struct Update {
  struct Part {
    RangeId range;
    Slice values;
  };
  std::vector<Part> parts;
  /// The number of samples from which the update was computed; 0 if the job has no samples.
  std::uint32_t samples = 0;
  /// The mean loss over the samples, if there are samples and the computation has reported it.
  std::optional<double> loss = std::nullopt;
  /// Present if the step was given its former step (Compute::former): the descent along the model's
  /// move from the values of that step to those of this one.
  std::optional<barrier::Descent> descent = std::nullopt;
};

/// Parts of an update that are final while the worker still computes the others.
struct EarlyParts {
  /// The update has the parts of all ranges from this one on.
  RangeId first = 0;
  /// The parts that are final, without the loss.
  Update update;
};

}  // namespace starling::core
