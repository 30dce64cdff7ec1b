/// Internal: the stream, library handles and scratch memory with which one worker computes on a
/// device. Each worker has its own, so that several workers share a device without locks. One
/// thread at a time.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>

#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/memory.hpp"

namespace starling::models::cuda {

class Stream;

/// A CUDA event without timing. A thread that waits for it sleeps, whatever the device's flags are;
/// cudaStreamSynchronize would keep a core busy for each worker.
class Event {
 public:
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  /// Records the event in the stream: it occurs when all earlier work in the stream is done.
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

/// Waits for copies and fills in the default stream: they may still run when their calls return,
/// and a Stream does not wait for them.
void finish_default_stream();

/// Makes a device this thread's current device. Callers do not restore the previous device, because
/// that would initialise CUDA on a device that no one asked for. Throws Failure.
void use_device(std::size_t index);
/// Does the same for destructors: ignores an error, because their other calls report it.
void use_device_to_free(std::size_t index) noexcept;

/// One worker's stream, handles and scratch. Requires: use_device() before every use on a thread,
/// also before the destructor.
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

  /// Memory that each call may overwrite.
  [[nodiscard]] void* scratch() const { return scratch_.data(); }
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_.bytes(); }
  /// Makes scratch at least `bytes` long. Returns true if it moved, so that recorded graphs must
  /// not be used any more.
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
