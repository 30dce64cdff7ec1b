#include "starling/models/cuda/graphs.hpp"

#include <algorithm>
#include <exception>

namespace starling::models::cuda {
namespace {

constexpr std::size_t entries_max = 16;

}  // namespace

void Graphs::run(const Context& context, std::size_t key, const std::function<void()>& work) {
  const auto at = entries_.find(key);
  if (at == entries_.end() && entries_.size() == entries_max) return work();
  Entry& entry = entries_[key];
  if (entry.graph == nullptr && entry.was_run && !entry.refuses) record(context, entry, work);
  if (entry.graph == nullptr) {
    work();
    entry.was_run = true;
    return;
  }
  check(cudaGraphLaunch(entry.graph, context.stream().get()), "launching a recorded step");
}

/// Applies the rules of recording to this thread's calls only: other threads may take memory
/// meanwhile.
void Graphs::record(const Context& context, Entry& entry, const std::function<void()>& work) {
  const cudaStream_t stream = context.stream().get();
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  bool complete = true;
  std::exception_ptr other;
  try {
    work();
  } catch (const Failure&) {
    complete = false;
  } catch (...) {
    complete = false;
    other = std::current_exception();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  complete = complete && ended == cudaSuccess && graph != nullptr;
  complete = complete && cudaGraphInstantiate(&entry.graph, graph, 0) == cudaSuccess;
  if (graph != nullptr) expect(cudaGraphDestroy(graph) == cudaSuccess, "a graph");
  if (complete) return;
  entry.graph = nullptr;
  entry.refuses = true;
  // Clears the error of the refusal: else the next call that asks for the last error would find it.
  static_cast<void>(cudaGetLastError());
  // `other` does not mean that the work cannot be recorded; it is thrown on after the capture ends.
  if (other != nullptr) std::rethrow_exception(other);
}

void Graphs::clear() {
  for (const auto& [key, entry] : entries_)
    if (entry.graph != nullptr)
      expect(cudaGraphExecDestroy(entry.graph) == cudaSuccess, "a recorded step");
  entries_.clear();
}

std::size_t Graphs::size() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [](const auto& entry) { return entry.second.graph != nullptr; }));
}

}  // namespace starling::models::cuda
