/// Internal: records repeated work in a stream as a CUDA graph, so that a step needs only one
/// launch. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>

#include "starling/models/cuda/context.hpp"

namespace starling::models::cuda {

/// The recorded graphs, one for each key; the key is a batch's number of rows.
class Graphs {
 public:
  Graphs() = default;
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  ~Graphs() { clear(); }

  /// Puts the work of `work` into the context's stream. The first call for a key calls `work`,
  /// which loads its kernels; the second records `work` as a graph and launches the graph; later
  /// calls launch the graph. If `work` cannot be recorded, or there are graphs for 16 other keys,
  /// every call calls `work`. Requires: the same work on the same memory for the same key until
  /// clear().
  void run(const Context& context, std::size_t key, const std::function<void()>& work);
  /// Destroys all graphs. Call it when memory has moved.
  void clear();
  /// Returns the number of graphs.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    cudaGraphExec_t graph = nullptr;
    bool was_run = false;
    bool cannot_be_recorded = false;
  };
  static void record(const Context& context, Entry& entry, const std::function<void()>& work);

  std::map<std::size_t, Entry> entries_;
};

}  // namespace starling::models::cuda
