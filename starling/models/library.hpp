/// The libraries below products and convolutions. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace starling::models {

enum class Library { onednn, eigen };

/// "oneDNN" or "Eigen".
[[nodiscard]] std::string_view name(Library library);

/// True where Starling was built with it; Eigen is always there.
[[nodiscard]] bool is_present(Library library);

/// "2.6.3"; empty where it is absent.
[[nodiscard]] std::string version(Library library);

/// Where oneDNN is present, oneDNN.
[[nodiscard]] inline Library preferred_library() {
  return is_present(Library::onednn) ? Library::onednn : Library::eigen;
}

}  // namespace starling::models
