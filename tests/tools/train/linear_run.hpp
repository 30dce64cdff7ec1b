/// A prepared run of a linear model, for tests of what a Recorder writes.
#pragma once

#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

inline PreparedRun linear_run(const Registry& registry, const AnyData& data) {
  PreparedRun run{RecordedRun{},
                  {.train = data, .test = std::nullopt},
                  make_model(registry, "linear", data, std::nullopt).value()};
  run.description = run.model;
  run.evaluator = local_evaluator(run);
  return run;
}

}  // namespace starling::program
