/// Reads and writes named tensors in the format of https://github.com/huggingface/safetensors: the
/// header's length in 8 bytes, little-endian; a JSON header; the tensors' bytes without gaps.
/// Blocking. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program::safetensors {

/// The element types that Starling reads. It writes the first three.
enum class Dtype { f32, f64, u64, u8, i32, i64 };

template <class T>
inline constexpr Dtype dtype_of = sizeof(T) == 4       ? Dtype::f32
                                  : T(1) / T(2) != T() ? Dtype::f64
                                                       : Dtype::u64;

[[nodiscard]] std::string_view print(Dtype dtype);
[[nodiscard]] std::size_t size_of(Dtype dtype);

/// A tensor to be written. The caller keeps the bytes alive.
struct View {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// Returns a view of `values` as a tensor. Requires: as many values as the shape has elements.
template <class T>
[[nodiscard]] View view(std::string name, std::vector<std::uint64_t> shape,
                        std::span<const T> values) {
  return {std::move(name), dtype_of<T>, std::move(shape), std::as_bytes(values)};
}

struct Tensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  /// Little-endian, row-major.
  std::vector<std::byte> bytes;

  [[nodiscard]] std::size_t size() const { return bytes.size() / size_of(dtype); }
  /// "F32 [784, 128]".
  [[nodiscard]] std::string describe() const;
};

using Metadata = std::map<std::string, std::string>;

struct File {
  Metadata metadata;
  /// In the order of the file.
  std::vector<Tensor> tensors;
  /// True if the file holds a `crc32` in its metadata; read() has checked it.
  bool is_checked = false;

  /// Returns the tensor of that name; null if there is none.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

/// Replaces `path` as a whole or leaves it as it was (see replace_file()). Writes the tensors with
/// the widest elements first, so that each is aligned to its elements. Adds `crc32`, a checksum
/// over metadata and tensors, to the metadata. Requires: valid names, each once.
[[nodiscard]] Result<void> write(const std::string& path, const Metadata& metadata,
                                 std::span<const View> tensors);

/// Returns whether a tensor of a file can have this name.
[[nodiscard]] bool is_valid_tensor_name(std::string_view name);

/// Returns whether the file begins like one of this format. The rest may still be damaged.
[[nodiscard]] bool has_safetensors_header(const std::string& path);

/// Reads a whole file. Refuses a file that is incomplete or malformed, that holds other types, or
/// that does not match its `crc32`; files of other tools have none. Never allocates more than a
/// small multiple of the file's size. Values may be anything, even NaN.
[[nodiscard]] Result<File> read(const std::string& path);

}  // namespace starling::program::safetensors
