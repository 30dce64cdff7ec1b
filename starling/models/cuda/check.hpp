/// Internal: every call of CUDA, cuBLAS and cuDNN goes through check(). What fails throws a
/// Failure, which the public functions of this library turn into an Error where a user can do
/// something about it (device.hpp); in the midst of training it is one failed try of a step.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace starling::models::cuda {

class Failure : public std::runtime_error {
 public:
  enum class Cause { driver, no_device, memory, image, other };

  /// What was tried, what the library said of it, and what to do.
  Failure(Cause cause, const std::string& what);
  [[nodiscard]] Cause cause() const { return cause_; }

 private:
  Cause cause_;
};

[[nodiscard]] Failure::Cause cause_of(cudaError_t code);
/// What a user can do, led by "; "; empty where nothing is known.
[[nodiscard]] std::string advice(Failure::Cause cause);

/// `what` was tried: "copying a batch".
void check(cudaError_t code, const char* what);
void check(cublasStatus_t code, const char* what);
void check(cudnnStatus_t code, const char* what);
/// Of the kernel that was just launched.
void check_launch(const char* what);
/// For destructors: complains on stderr, and goes on.
void expect(bool ok, const char* what) noexcept;

}  // namespace starling::models::cuda
