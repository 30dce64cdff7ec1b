/// Internal: checks every call of CUDA, cuBLAS and cuDNN, and throws a Failure if one fails. The
/// functions of device.hpp turn a Failure into an Error; in a worker it makes one attempt of a step
/// fail.
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

  /// `message` names the failed action and holds the library's message; the constructor appends
  /// advice(cause).
  Failure(Cause cause, const std::string& message);
  [[nodiscard]] Cause cause() const { return cause_; }

 private:
  Cause cause_;
};

[[nodiscard]] Failure::Cause cause_of(cudaError_t code);
/// Returns advice for the user, which begins with "; "; empty for Cause::other.
[[nodiscard]] std::string advice(Failure::Cause cause);

/// Throws Failure if `code` is an error. `action` is for the message: "copying a batch".
void check(cudaError_t code, const char* action);
void check(cublasStatus_t code, const char* action);
void check(cudnnStatus_t code, const char* action);
/// Throws Failure if the last kernel launch failed.
void check_launch(const char* action);
/// For destructors: if a resource could not be freed, prints this on stderr.
void warn_unless_freed(bool is_freed, const char* resource) noexcept;

}  // namespace starling::models::cuda
