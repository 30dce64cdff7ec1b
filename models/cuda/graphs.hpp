/// Internal: records work that is put into a stream again and again as a CUDA graph, so that a step
/// costs one launch. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>

#include "starling/models/cuda/context.hpp"

namespace starling::models::cuda {

/// One recording for each key, a batch's number of rows.
class Graphs {
 public:
  Graphs() = default;
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  ~Graphs() { clear(); }

  /// Puts the work of `work` into the context's stream. The first call of a key calls `work` as it
  /// is, which loads kernels; the second call records it and launches the recording, as every later
  /// call does. Work that cannot be recorded, and work of keys beyond the first 16, is called every
  /// time. Requires: the same work for the same key, on the same memory, until clear().
  void run(const Context& context, std::size_t key, const std::function<void()>& work);
  /// Drops all recordings, for memory that has moved.
  void clear();
  /// Recordings that are in use.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    cudaGraphExec_t graph = nullptr;
    bool was_run = false;
    bool refuses = false;
  };
  static void record(const Context& context, Entry& entry, const std::function<void()>& work);

  std::map<std::size_t, Entry> entries_;
};

}  // namespace starling::models::cuda
