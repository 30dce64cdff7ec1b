/// The libraries that compute matrix products and convolutions. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace starling::models {

enum class KernelLibrary { onednn, eigen };

/// Returns "oneDNN" or "Eigen".
[[nodiscard]] std::string_view name(KernelLibrary library);

/// Returns true if Starling was built with `library`; Eigen is always present.
[[nodiscard]] bool is_present(KernelLibrary library);

/// Returns the library's version, e.g. "2.6.3"; empty if the library is absent.
[[nodiscard]] std::string version(KernelLibrary library);

/// Returns oneDNN if it is present, else Eigen.
[[nodiscard]] inline KernelLibrary preferred_library() {
  return is_present(KernelLibrary::onednn) ? KernelLibrary::onednn : KernelLibrary::eigen;
}

}  // namespace starling::models
