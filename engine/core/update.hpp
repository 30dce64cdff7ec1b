/// The ranges that a worker reads in a step, and the update that it computes.
#pragma once

#include <cstdint>
#include <vector>

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
  std::uint32_t samples = 0;
};

}  // namespace starling::core
