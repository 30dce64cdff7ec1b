/// Internal: the streams, handles and scratch with which one worker computes on a device. Each
/// worker has its own, so that several workers share a device without locks. One thread at a time.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>

#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/memory.hpp"

namespace starling::models::cuda {

class Stream;

/// A mark in a stream, without time. A thread that waits for it sleeps, whatever flags the device
/// has: with cudaStreamSynchronize each worker would keep a core busy.
class Event {
 public:
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  void record(const Stream& stream) const;
  /// Makes the stream wait for the mark.
  void hold(const Stream& stream) const;
  /// Sleeps on the host until the mark is reached; returns at once where nothing was recorded.
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
  /// Sleeps until all work in the stream is done; throws the error where some of it failed.
  void finish() const;

 private:
  Event done_;
  cudaStream_t stream_ = nullptr;
};

/// Waits for copies and fills that were not put into a Stream: they may still run when their calls
/// return, and a Stream does not wait for them.
void finish_default_stream();

/// Makes a device this thread's current one, and leaves it so: choosing the former device again
/// would start CUDA on a device that nobody asked for. Throws Failure.
void use_device(std::size_t index);
/// As use_device(), for destructors: ignores an error, which their other calls then report.
void use_device_to_free(std::size_t index) noexcept;

/// Requires: use_device() before every use on this thread, also before its destructor.
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

  /// Scratch for any use within one call; its former content is lost.
  [[nodiscard]] void* scratch() const { return scratch_.data(); }
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_.bytes(); }
  /// Makes scratch at least `bytes` long. True where it moved, so that recorded graphs are void.
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
