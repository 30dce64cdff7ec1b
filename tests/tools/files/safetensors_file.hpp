/// Writes safetensors files as other tools do, without a checksum. For tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace starling::program {

/// A tensor as a file has it. `shape` is a JSON list; `bytes` may contradict `dtype` and `shape`.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::string shape;
  std::string bytes;
};

/// Returns the bytes of the values as they lie in memory.
template <class T>
[[nodiscard]] std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Returns a safetensors file with these tensors, one after another.
[[nodiscard]] inline std::string file_of(const std::vector<RawTensor>& tensors) {
  std::string header = "{";
  std::string body;
  for (const RawTensor& t : tensors) {
    const std::size_t begin = body.size();
    body += t.bytes;
    header += (header.size() > 1 ? ",\"" : "\"") + t.name + "\":{\"dtype\":\"" + t.dtype +
              "\",\"shape\":" + t.shape + ",\"data_offsets\":[" + std::to_string(begin) + "," +
              std::to_string(body.size()) + "]}";
  }
  header += "}";
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + body;
}

}  // namespace starling::program
