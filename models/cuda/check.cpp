#include "starling/models/cuda/check.hpp"

#include <cstdio>

namespace starling::models::cuda {

Failure::Failure(Cause cause, const std::string& message)
    : std::runtime_error(message + advice(cause)), cause_(cause) {}

Failure::Cause cause_of(cudaError_t code) {
  switch (code) {
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorStubLibrary:
      return Failure::Cause::driver;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
      return Failure::Cause::no_device;
    case cudaErrorMemoryAllocation:
      return Failure::Cause::memory;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorJitCompilerNotFound:
      return Failure::Cause::image;
    default:
      return Failure::Cause::other;
  }
}

std::string advice(Failure::Cause cause) {
  const int version = CUDART_VERSION;
  const std::string toolkit =
      std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  switch (cause) {
    case Failure::Cause::driver:
      return "; install a driver that supports CUDA " + toolkit + ", or use --device cpu";
    case Failure::Cause::no_device:
      return "; no device can be used here: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
             "--device cpu";
    case Failure::Cause::memory:
      return "; valid: a smaller --batch, a smaller model, fewer --threads, or --device cpu";
    case Failure::Cause::image:
      return "; this build has no code for that device: build with "
             "-DCMAKE_CUDA_ARCHITECTURES=native on its machine, or use --device cpu";
    case Failure::Cause::other:
      return "";
  }
  return "";
}

void check(cudaError_t code, const char* action) {
  if (code == cudaSuccess) return;
  // Clears the last error, if CUDA can continue after it, so that the next check of a launch does
  // not find it.
  static_cast<void>(cudaGetLastError());
  throw Failure{cause_of(code), std::string{action} + ": " + cudaGetErrorString(code) + " (" +
                                    cudaGetErrorName(code) + ")"};
}

void check(cublasStatus_t code, const char* action) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  const auto cause = code == CUBLAS_STATUS_ALLOC_FAILED    ? Failure::Cause::memory
                     : code == CUBLAS_STATUS_ARCH_MISMATCH ? Failure::Cause::image
                                                           : Failure::Cause::other;
  throw Failure{cause, std::string{action} + ": cuBLAS: " + cublasGetStatusString(code)};
}

void check(cudnnStatus_t code, const char* action) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  const bool is_memory = code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                         code == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  const bool is_architecture = code == CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
  throw Failure{is_memory         ? Failure::Cause::memory
                : is_architecture ? Failure::Cause::image
                                  : Failure::Cause::other,
                std::string{action} + ": cuDNN: " + cudnnGetErrorString(code)};
}

void check_launch(const char* action) { check(cudaGetLastError(), action); }

void warn_unless_freed(bool is_freed, const char* resource) noexcept {
  if (!is_freed) std::fprintf(stderr, "starling: the CUDA library failed to free %s\n", resource);
}

}  // namespace starling::models::cuda
