/// Internal: checks every call of CUDA, cuBLAS and cuDNN, and throws a Failure if the call fails.
/// The functions of device.hpp turn a Failure into an Error. In a worker's step, a Failure fails
/// the current attempt of the step.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace starling::models::cuda {

/// A failed call of a CUDA library.
class Failure : public std::runtime_error {
 public:
  /// driver: the driver is missing or too old. no_device: there is no such device, or it cannot be
  /// used. memory: there is too little memory. image: this build has no machine code (in CUDA's
  /// words, no kernel image) for the device.
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

/// Throws Failure if `code` is an error. `action` says in the message what failed, such as "copying
/// a batch".
void check(cudaError_t code, const char* action);
void check(cublasStatus_t code, const char* action);
void check(cudnnStatus_t code, const char* action);
/// Throws Failure if the last kernel launch failed.
void check_launch(const char* action);
/// Prints on stderr that `resource` could not be freed, unless `is_freed`. For destructors, which
/// cannot throw.
void warn_unless_freed(bool is_freed, const char* resource) noexcept;

}  // namespace starling::models::cuda
