/// Internal: the stream, library handles and scratch memory with which one worker computes on a
/// device. Each worker has its own, so that several workers share a device without locks. Not
/// thread-safe.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>

#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/memory.hpp"

namespace starling::models::cuda {

class Stream;

/// A CUDA event without timing. A thread that waits for it sleeps, whatever the device's flags are.
/// With cudaStreamSynchronize, each waiting worker would keep a core busy.
class Event {
 public:
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  /// Records the event in the stream. It occurs when all earlier work in the stream is done.
  void record(const Stream& stream) const;
  /// Delays later work in `stream` until the event has occurred.
  void delay(const Stream& stream) const;
  /// Blocks the calling thread until the event has occurred; returns at once if it was never
  /// recorded.
  void wait() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// A CUDA stream that does not synchronise with the default stream.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  /// Blocks the calling thread until all work in the stream is done. Throws Failure if some of it
  /// failed.
  void finish() const;

 private:
  Event done_;
  cudaStream_t stream_ = nullptr;
};

/// Waits for copies and fills in the default stream. Calls such as cudaMemcpy may return before
/// their work is done, and a Stream does not wait for it.
void finish_default_stream();

/// Makes device `index` this thread's current device. Callers do not restore the previous device
/// afterwards, because this would initialise CUDA on a device that no job uses. Throws Failure.
void use_device(std::size_t index);
/// Does the same for destructors. Ignores errors: the calls that free resources report them.
void use_device_to_free(std::size_t index) noexcept;

/// One worker's stream, library handles and scratch. Requires: the thread calls use_device() before
/// each use, also before the destructor.
class Context {
 public:
  explicit Context(Precision precision);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  [[nodiscard]] const Stream& stream() const { return stream_; }
  [[nodiscard]] cublasHandle_t blas() const { return blas_; }
  [[nodiscard]] cudnnHandle_t dnn() const { return dnn_; }
  [[nodiscard]] Precision precision() const { return precision_; }

  /// Memory that every call of a layer may overwrite.
  [[nodiscard]] void* scratch() const { return scratch_.data(); }
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_.bytes(); }
  /// Makes scratch at least `bytes` bytes long. Returns true if its address changed: graphs that
  /// were recorded before must then not be used any more.
  bool reserve_scratch(std::size_t bytes);

 private:
  Precision precision_;
  Stream stream_;
  cublasHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  DeviceMemory blas_workspace_;
  DeviceMemory scratch_;
};

}  // namespace starling::models::cuda
