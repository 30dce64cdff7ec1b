#include "starling/models/cuda/check.hpp"

#include <cstdio>

namespace starling::models::cuda {

Failure::Failure(Cause cause, const std::string& what)
    : std::runtime_error(what + advice(cause)), cause_(cause) {}

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
      return "; install a driver that knows CUDA " + toolkit + ", or use --device cpu";
    case Failure::Cause::no_device:
      return "; no device can be used here: look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
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

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  // Clears the error where it is not sticky: else the next call that asks for the last error would
  // find it.
  static_cast<void>(cudaGetLastError());
  throw Failure{cause_of(code), std::string{what} + ": " + cudaGetErrorString(code) + " (" +
                                    cudaGetErrorName(code) + ")"};
}

void check(cublasStatus_t code, const char* what) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  const auto cause = code == CUBLAS_STATUS_ALLOC_FAILED    ? Failure::Cause::memory
                     : code == CUBLAS_STATUS_ARCH_MISMATCH ? Failure::Cause::image
                                                           : Failure::Cause::other;
  throw Failure{cause, std::string{what} + ": cuBLAS: " + cublasGetStatusString(code)};
}

void check(cudnnStatus_t code, const char* what) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  const bool memory = code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                      code == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  const bool arch = code == CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
  throw Failure{memory ? Failure::Cause::memory
                : arch ? Failure::Cause::image
                       : Failure::Cause::other,
                std::string{what} + ": cuDNN: " + cudnnGetErrorString(code)};
}

void check_launch(const char* what) { check(cudaGetLastError(), what); }

void expect(bool ok, const char* what) noexcept {
  if (!ok) std::fprintf(stderr, "starling: the CUDA library failed to free %s\n", what);
}

}  // namespace starling::models::cuda
