#include "starling/models/cuda/context.hpp"

namespace starling::models::cuda {
namespace {

/// The size of the workspace that cuBLAS would allocate by itself on the largest devices. The
/// Context allocates it, because cuBLAS must not allocate memory while a step is recorded as a
/// graph.
constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20U;

}  // namespace

Event::Event() {
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync),
        "making an event");
}
Event::~Event() { warn_unless_freed(cudaEventDestroy(event_) == cudaSuccess, "an event"); }
void Event::record(const Stream& stream) const {
  check(cudaEventRecord(event_, stream.get()), "recording an event");
}
void Event::delay(const Stream& stream) const {
  check(cudaStreamWaitEvent(stream.get(), event_, 0), "waiting for an event");
}
void Event::wait() const { check(cudaEventSynchronize(event_), "computing on the device"); }

Stream::Stream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}
Stream::~Stream() { warn_unless_freed(cudaStreamDestroy(stream_) == cudaSuccess, "a stream"); }
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
    // With atomics, cuBLAS may add the parts of a product in an order that depends on timing.
    check(cublasSetAtomicsMode(blas_, CUBLAS_ATOMICS_NOT_ALLOWED), "starting cuBLAS");
    blas_workspace_ = DeviceMemory{blas_workspace_bytes};
    check(cublasSetWorkspace(blas_, blas_workspace_.data(), blas_workspace_.bytes()),
          "starting cuBLAS");
    check(cudnnCreate(&dnn_), "starting cuDNN");
    check(cudnnSetStream(dnn_, stream_.get()), "starting cuDNN");
  } catch (...) {
    if (dnn_ != nullptr) warn_unless_freed(cudnnDestroy(dnn_) == CUDNN_STATUS_SUCCESS, "cuDNN");
    if (blas_ != nullptr)
      warn_unless_freed(cublasDestroy(blas_) == CUBLAS_STATUS_SUCCESS, "cuBLAS");
    throw;
  }
}

Context::~Context() {
  // Work in flight must not use memory after it is freed.
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
  warn_unless_freed(cudnnDestroy(dnn_) == CUDNN_STATUS_SUCCESS, "cuDNN");
  warn_unless_freed(cublasDestroy(blas_) == CUBLAS_STATUS_SUCCESS, "cuBLAS");
}

bool Context::reserve_scratch(std::size_t bytes) {
  if (bytes <= scratch_.bytes()) return false;
  stream_.finish();
  scratch_ = DeviceMemory{};
  scratch_ = DeviceMemory{bytes};
  return true;
}

}  // namespace starling::models::cuda
