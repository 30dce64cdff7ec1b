#include "starling/models/cuda/context.hpp"

namespace starling::models::cuda {
namespace {

/// Bytes that cuBLAS would take by itself on the largest devices; it is given them, so that it
/// takes no memory while a step is recorded.
constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20U;

}  // namespace

Event::Event() {
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync),
        "making an event");
}
Event::~Event() { expect(cudaEventDestroy(event_) == cudaSuccess, "an event"); }
void Event::record(const Stream& stream) const {
  check(cudaEventRecord(event_, stream.get()), "recording an event");
}
void Event::hold(const Stream& stream) const {
  check(cudaStreamWaitEvent(stream.get(), event_, 0), "waiting for an event");
}
void Event::wait() const { check(cudaEventSynchronize(event_), "computing on the device"); }

Stream::Stream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}
Stream::~Stream() { expect(cudaStreamDestroy(stream_) == cudaSuccess, "a stream"); }
void Stream::finish() const {
  done_.record(*this);
  done_.wait();
}

void finish_default_stream() {
  check(cudaStreamSynchronize(cudaStreamLegacy), "copying to the device");
}

void use_device(std::size_t index) {
  check(cudaSetDevice(static_cast<int>(index)), "choosing the device");
}
void use_device_to_free(std::size_t index) noexcept {
  static_cast<void>(cudaSetDevice(static_cast<int>(index)));
}

Context::Context(Precision precision) : precision_(precision) {
  try {
    check(cublasCreate(&blas_), "starting cuBLAS");
    check(cublasSetStream(blas_, stream_.get()), "starting cuBLAS");
    check(cublasSetMathMode(blas_, precision == Precision::tf32 ? CUBLAS_TF32_TENSOR_OP_MATH
                                                                : CUBLAS_DEFAULT_MATH),
          "starting cuBLAS");
    // Makes cuBLAS sum split products in an order that does not depend on timing.
    check(cublasSetAtomicsMode(blas_, CUBLAS_ATOMICS_NOT_ALLOWED), "starting cuBLAS");
    blas_workspace_ = DeviceMemory{blas_workspace_bytes};
    check(cublasSetWorkspace(blas_, blas_workspace_.data(), blas_workspace_.bytes()),
          "starting cuBLAS");
    check(cudnnCreate(&dnn_), "starting cuDNN");
    check(cudnnSetStream(dnn_, stream_.get()), "starting cuDNN");
  } catch (...) {
    if (dnn_ != nullptr) expect(cudnnDestroy(dnn_) == CUDNN_STATUS_SUCCESS, "cuDNN");
    if (blas_ != nullptr) expect(cublasDestroy(blas_) == CUBLAS_STATUS_SUCCESS, "cuBLAS");
    throw;
  }
}

Context::~Context() {
  // Work that was started must not read memory after it is returned.
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
  expect(cudnnDestroy(dnn_) == CUDNN_STATUS_SUCCESS, "cuDNN");
  expect(cublasDestroy(blas_) == CUBLAS_STATUS_SUCCESS, "cuBLAS");
}

bool Context::reserve_scratch(std::size_t bytes) {
  if (bytes <= scratch_.bytes()) return false;
  stream_.finish();
  scratch_ = DeviceMemory{};
  scratch_ = DeviceMemory{bytes};
  return true;
}

}  // namespace starling::models::cuda
