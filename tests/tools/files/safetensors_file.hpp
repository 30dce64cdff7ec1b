/// Writes safetensors files as other tools do, without a checksum. For tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace starling::program {

/// A tensor to put into a file.
struct Written {
  std::string name;
  std::string dtype;
  std::string shape;
  std::string bytes;
};

template <class T>
[[nodiscard]] std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

[[nodiscard]] inline std::string file_of(const std::vector<Written>& tensors) {
  std::string header = "{";
  std::string body;
  for (const Written& t : tensors) {
    const std::size_t at = body.size();
    body += t.bytes;
    header += (header.size() > 1 ? ",\"" : "\"") + t.name + "\":{\"dtype\":\"" + t.dtype +
              "\",\"shape\":" + t.shape + ",\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(body.size()) + "]}";
  }
  header += "}";
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + body;
}

}  // namespace starling::program
