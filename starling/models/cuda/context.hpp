/// Internal: what one worker computes with on a device: streams, handles and scratch of its own, so
/// that several workers share a device without locks. One thread at a time.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>

#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/memory.hpp"

namespace starling::models::cuda {

class Stream;

/// A mark in a stream, without time. Who waits for it sleeps, whatever the device was told before:
/// cudaStreamSynchronize would keep a core busy for each worker.
class Event {
 public:
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  void record(const Stream& stream) const;
  /// The stream goes on only behind the mark.
  void hold(const Stream& stream) const;
  /// Sleeps on the host; not at all where nothing was recorded.
  void wait() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// A stream of its own, not tied to the default one.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  /// Sleeps until all that was put in is done; throws what went wrong in it.
  void finish() const;

 private:
  Event done_;
  cudaStream_t stream_ = nullptr;
};

/// Waits for copies and fillings that were not put into a Stream: they are not done when their
/// calls return, and a Stream does not wait for them.
void finish_default_stream();

/// Makes a device this thread's, and leaves it so: to choose the former one again would start CUDA
/// on a device that nobody asked for. Throws Failure.
void use_device(std::size_t index);
/// The same for destructors, whose other calls complain of what fails.
void use_device_to_free(std::size_t index) noexcept;

/// Requires: use_device() before every use on this thread, also before its end.
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

  /// Of any use within one call; what was there is lost.
  [[nodiscard]] void* scratch() const { return scratch_.data(); }
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_.bytes(); }
  /// Makes scratch at least so large. True where it moved, so that what was recorded is void.
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
