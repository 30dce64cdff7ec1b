/// A prepared run of a linear model, for tests of what a Recorder writes.
#pragma once

#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

inline PreparedRun linear_run(const Registry& registry, const AnyData& data) {
  return {.job = {},
          .data = {.train = data, .test = std::nullopt},
          .model = make_model(registry, "linear", data, std::nullopt).value(),
          .resolved = {},
          .notes = {},
          .identity = {},
          .resume_note = {}};
}

}  // namespace starling::program
