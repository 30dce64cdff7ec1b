/// Internal: every call of CUDA, cuBLAS and cuDNN goes through check(). A call that fails throws a
/// Failure. The public functions of this library turn it into an Error where a user can do
/// something about it (device.hpp); during training it is one failed try of a step.
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

  /// `what` holds the failed action and the library's message; the constructor appends
  /// advice(cause).
  Failure(Cause cause, const std::string& what);
  [[nodiscard]] Cause cause() const { return cause_; }

 private:
  Cause cause_;
};

[[nodiscard]] Failure::Cause cause_of(cudaError_t code);
/// Returns advice for the user, led by "; "; empty for Cause::other.
[[nodiscard]] std::string advice(Failure::Cause cause);

/// Throws Failure where `code` is an error. `what` names the action: "copying a batch".
void check(cudaError_t code, const char* what);
void check(cublasStatus_t code, const char* what);
void check(cudnnStatus_t code, const char* what);
/// Throws Failure where the last kernel launch failed.
void check_launch(const char* what);
/// For destructors: prints an error on stderr and continues.
void expect(bool ok, const char* what) noexcept;

}  // namespace starling::models::cuda
