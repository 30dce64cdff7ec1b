/// The libraries that compute matrix products and convolutions. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace starling::models {

enum class Library { onednn, eigen };

/// Returns "oneDNN" or "Eigen".
[[nodiscard]] std::string_view name(Library library);

/// Returns true if Starling was built with `library`; Eigen is always present.
[[nodiscard]] bool is_present(Library library);

/// Returns the library's version, e.g. "2.6.3"; empty if the library is absent.
[[nodiscard]] std::string version(Library library);

/// Returns oneDNN if it is present, else Eigen.
[[nodiscard]] inline Library preferred_library() {
  return is_present(Library::onednn) ? Library::onednn : Library::eigen;
}

}  // namespace starling::models
