/// The libraries that compute products and convolutions. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace starling::models {

enum class Library { onednn, eigen };

/// "oneDNN" or "Eigen".
[[nodiscard]] std::string_view name(Library library);

/// True where Starling was built with `library`; Eigen is always present.
[[nodiscard]] bool is_present(Library library);

/// The library's version, e.g. "2.6.3"; empty where the library is absent.
[[nodiscard]] std::string version(Library library);

/// Returns oneDNN where it is present, else Eigen.
[[nodiscard]] inline Library preferred_library() {
  return is_present(Library::onednn) ? Library::onednn : Library::eigen;
}

}  // namespace starling::models
