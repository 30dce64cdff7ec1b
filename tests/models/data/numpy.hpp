/// Makes files like those that numpy.save and numpy.savez write. For tests.
#pragma once

#include <zip.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling::models {

/// Returns an npy file of format version 1 with this header.
inline std::string npy_with(const std::string& header, std::string_view data) {
  std::string bytes = "\x93NUMPY";
  bytes +=
      {'\1', '\0', static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
  return bytes + header + std::string{data};
}

/// Returns an npy file. `type` is NumPy's, such as `<f4`; `shape` is the content of the
/// parentheses.
inline std::string npy(const std::string& type, const std::string& shape, std::string_view data,
                       bool is_fortran = false) {
  return npy_with("{'descr': '" + type + "', 'fortran_order': " + (is_fortran ? "True" : "False") +
                      ", 'shape': (" + shape + "), }\n",
                  data);
}

/// Returns an npy file whose data begin at a multiple of 4 bytes, as those of NumPy do.
inline std::string aligned_npy(const std::string& type, const std::string& shape,
                               std::string_view data, bool is_fortran = false) {
  const std::string start = "{'descr': '" + type +
                            "', 'fortran_order': " + (is_fortran ? "True" : "False") +
                            ", 'shape': (" + shape + "), }";
  const std::size_t padding = 64 - (10 + start.size() + 1) % 64;
  return npy_with(start + std::string(padding, ' ') + "\n", data);
}

/// Returns the bytes of the numbers as this machine stores them: little-endian.
template <class T>
std::string little(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

/// Returns the bytes of the numbers, big-endian.
template <class T>
std::string big(const std::vector<T>& numbers) {
  std::string bytes;
  for (const T& number : numbers) {
    const std::string one = little(std::vector<T>{number});
    bytes.append(one.rbegin(), one.rend());
  }
  return bytes;
}

/// Returns a zip archive of these entries, as pairs of name and content. `method` is the
/// compression.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries,
                          int method = ZIP_CM_STORE) {
  const auto require = [](bool done) {
    if (!done) std::abort();
  };
  zip_source_t* const buffer = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_t* const archive = zip_open_from_source(buffer, ZIP_TRUNCATE, nullptr);
  require(archive != nullptr);
  zip_source_keep(buffer);
  for (const auto& [name, content] : entries) {
    zip_source_t* const source = zip_source_buffer(archive, content.data(), content.size(), 0);
    const auto index = zip_file_add(archive, name.c_str(), source, 0);
    require(index >= 0);
    require(zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0) == 0);
  }
  require(zip_close(archive) == 0 && zip_source_open(buffer) == 0);
  zip_stat_t status;
  require(zip_source_stat(buffer, &status) == 0);
  std::string bytes(status.size, '\0');
  require(zip_source_read(buffer, bytes.data(), bytes.size()) ==
          static_cast<zip_int64_t>(bytes.size()));
  zip_source_close(buffer);
  zip_source_free(buffer);
  return bytes;
}

}  // namespace starling::models
