/// Internal: records the repeated work of a step as a CUDA graph, so that a step needs only one
/// launch. Not thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>

#include "starling/models/cuda/context.hpp"

namespace starling::models::cuda {

/// The recorded graphs, one for each key; the key is a batch's number of rows.
class GraphCache {
 public:
  GraphCache() = default;
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;
  ~GraphCache() { clear(); }

  /// Enqueues on the context's stream the kernels that `work` launches: by a call of `work`, or by
  /// a graph of it. The first run() for a key calls `work`, so that CUDA loads the kernels, which
  /// it cannot do while it records. The second records `work` as a graph and launches the graph.
  /// Later ones launch the graph. If `work` cannot be recorded, or if there are 16 other keys, each
  /// run() calls `work`. Requires: until clear(), `work` launches the same work on the same memory
  /// for the same key.
  void run(const Context& context, std::size_t key, const std::function<void()>& work);
  /// Destroys all graphs. Must be called when memory that they use has moved.
  void clear();
  /// Returns the number of graphs.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    cudaGraphExec_t graph = nullptr;
    bool was_run = false;
    bool cannot_be_recorded = false;
  };
  /// Records `work` in entry.graph, or sets cannot_be_recorded.
  static void record(const Context& context, Entry& entry, const std::function<void()>& work);

  std::map<std::size_t, Entry> entries_;
};

}  // namespace starling::models::cuda
