#include "starling/models/cuda/graphs.hpp"

#include <algorithm>
#include <exception>

namespace starling::models::cuda {
namespace {

/// The most keys that a GraphCache holds, because each graph takes memory on the host and the
/// device.
constexpr std::size_t entries_max = 16;

}  // namespace

void GraphCache::run(const Context& context, std::size_t key, const std::function<void()>& work) {
  const auto found = entries_.find(key);
  if (found == entries_.end() && entries_.size() == entries_max) return work();
  Entry& entry = entries_[key];
  if (entry.graph == nullptr && entry.was_run && !entry.cannot_be_recorded)
    record(context, entry, work);
  if (entry.graph == nullptr) {
    work();
    entry.was_run = true;
    return;
  }
  check(cudaGraphLaunch(entry.graph, context.stream().get()), "launching a recorded step");
}

/// Captures in thread-local mode, so that other threads may allocate memory during the capture.
void GraphCache::record(const Context& context, Entry& entry, const std::function<void()>& work) {
  const cudaStream_t stream = context.stream().get();
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  bool is_complete = true;
  std::exception_ptr other_exception;
  try {
    work();
  } catch (const Failure&) {
    is_complete = false;
  } catch (...) {
    is_complete = false;
    other_exception = std::current_exception();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  is_complete = is_complete && ended == cudaSuccess && graph != nullptr;
  is_complete = is_complete && cudaGraphInstantiate(&entry.graph, graph, 0) == cudaSuccess;
  if (graph != nullptr) warn_unless_freed(cudaGraphDestroy(graph) == cudaSuccess, "a graph");
  if (is_complete) return;
  entry.graph = nullptr;
  entry.cannot_be_recorded = true;
  // Clears the last error, so that the next check of a launch does not find it.
  static_cast<void>(cudaGetLastError());
  // An exception that is not a Failure has another cause than recording: the caller gets it. It is
  // thrown only now, because the capture had to end first.
  if (other_exception != nullptr) std::rethrow_exception(other_exception);
}

void GraphCache::clear() {
  for (const auto& [key, entry] : entries_)
    if (entry.graph != nullptr)
      warn_unless_freed(cudaGraphExecDestroy(entry.graph) == cudaSuccess, "a recorded step");
  entries_.clear();
}

std::size_t GraphCache::size() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [](const auto& entry) { return entry.second.graph != nullptr; }));
}

}  // namespace starling::models::cuda
