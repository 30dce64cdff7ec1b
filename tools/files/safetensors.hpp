/// Reads and writes named tensors in the format of https://github.com/huggingface/safetensors. A
/// file is the length of the header in 8 bytes, little-endian; the header, which is JSON; and the
/// tensors' bytes without gaps. Blocking. Thread-safe.
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

/// The element type of T, which is float, double or std::uint64_t.
template <class T>
inline constexpr Dtype dtype_of = sizeof(T) == 4       ? Dtype::f32
                                  : T(1) / T(2) != T() ? Dtype::f64
                                                       : Dtype::u64;

/// Returns the name in the header, such as "F32".
[[nodiscard]] std::string_view print(Dtype dtype);
/// Returns the size of an element, in bytes.
[[nodiscard]] std::size_t size_of(Dtype dtype);

/// A tensor to be written. Does not own the bytes.
struct View {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// Returns a view of `values` as a tensor.
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

  /// Returns the number of elements.
  [[nodiscard]] std::size_t size() const { return bytes.size() / size_of(dtype); }
  /// Returns the element type and the shape, such as "F32 [784, 128]".
  [[nodiscard]] std::string describe() const;
};

using Metadata = std::map<std::string, std::string>;

struct File {
  Metadata metadata;
  /// In the order of their bytes in the file.
  std::vector<Tensor> tensors;
  /// True if the file has a `crc32` in its metadata, which read() has then checked and removed from
  /// `metadata`.
  bool has_checksum = false;

  /// Returns the tensor of that name; null if there is none.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

/// Replaces `path` as a whole or leaves it as it was (see replace_file()). Writes the tensors with
/// the largest elements first, so that the bytes of each tensor are aligned to its element size.
/// Adds `crc32`, a checksum of metadata and tensors, to the metadata. Refuses metadata that have
/// this key, and a tensor without as many values as its shape has elements. Requires: for all names
/// is_valid_tensor_name() holds, and no two are equal.
[[nodiscard]] Result<void> write(const std::string& path, const Metadata& metadata,
                                 std::span<const View> tensors);

/// Returns true if a tensor of a file can have this name: it is UTF-8, not empty, and not
/// "__metadata__".
[[nodiscard]] bool is_valid_tensor_name(std::string_view name);

/// Returns true if the file begins like one of this format. The rest may still be damaged.
[[nodiscard]] bool has_safetensors_header(const std::string& path);

/// Reads a whole file. Returns an Error if the file is incomplete or malformed, holds other element
/// types, or does not match its `crc32`. A file of another tool has no `crc32` and is valid
/// without. Allocates no more than a small multiple of the file's size for tensors, and about 128
/// bytes for each byte of the header. Values may be anything, even NaN.
[[nodiscard]] Result<File> read(const std::string& path);

}  // namespace starling::program::safetensors
