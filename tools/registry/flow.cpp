#include "starling/tools/registry/flow.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "starling/base/input.hpp"

namespace starling::program {

Result<FlowContext> context_of_source(SpecReader& options) {
  std::vector<std::string> files;
  for (std::string file = options.positional(); !file.empty(); file = options.positional())
    files.push_back(std::move(file));
  if (files.empty())
    options.refuse("has no file to read; valid: NAME:FILE[,FILE...][,option=value...]");
  if (auto done = options.finish(); !done) return std::move(done).error();
  const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 1U, 32U);
  // Takes the limits of this thread along, because the engine's threads, which call the function,
  // have none.
  const auto is_stopped = [limits = ReadScope::limits()] {
    return limits.stop.stop_requested() || std::chrono::steady_clock::now() > limits.deadline;
  };
  auto engine = flow::MapReduce::make({.threads = threads, .is_stopped = is_stopped});
  if (!engine) return std::move(engine).error();
  return FlowContext{*std::move(engine), std::move(files), nullptr, 0};
}

}  // namespace starling::program
