/// Reads and writes named tensors in the format of https://github.com/huggingface/safetensors. A
/// file has three parts: the length of the header in 8 bytes, little-endian; the header, which is
/// JSON; and the tensors' bytes without gaps. The functions block while they read or write a file.
/// Thread-safe.
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

/// The element type of values of type T. Requires: T is float, double or std::uint64_t.
template <class T>
inline constexpr Dtype dtype_of = sizeof(T) == 4       ? Dtype::f32
                                  : T(1) / T(2) != T() ? Dtype::f64
                                                       : Dtype::u64;

/// Returns the name of the type in a file's header, such as "F32".
[[nodiscard]] std::string_view print(Dtype dtype);
/// Returns the size of an element, in bytes.
[[nodiscard]] std::size_t size_of(Dtype dtype);

/// A tensor to write. It refers to bytes that the caller owns.
struct View {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  /// Little-endian, row-major.
  std::span<const std::byte> bytes;
};

/// Returns a view of `values` as a tensor.
template <class T>
[[nodiscard]] View view(std::string name, std::vector<std::uint64_t> shape,
                        std::span<const T> values) {
  return {std::move(name), dtype_of<T>, std::move(shape), std::as_bytes(values)};
}

/// A tensor that owns its bytes, as read() returns it.
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
  /// True if the file's metadata had a `crc32`. read() has checked it, and does not put it into
  /// `metadata`.
  bool has_checksum = false;

  /// Returns the tensor with this name, or nullptr if the file has no such tensor.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

/// Replaces the file `path` as a whole, or leaves it as it was (see replace_file()). Writes tensors
/// with larger elements first, so that the bytes of each tensor are aligned to its element size.
/// Adds `crc32`, a checksum of metadata and tensors, to the metadata. Replaces bytes of the
/// metadata that are not UTF-8. Returns an Error if `metadata` has the key `crc32`, or if a tensor
/// does not have as many bytes as its shape needs. Requires: is_valid_tensor_name() is true for all
/// names, and no two names are equal.
[[nodiscard]] Result<void> write(const std::string& path, const Metadata& metadata,
                                 std::span<const View> tensors);

/// Returns true if write() can write a tensor of this name: the name is UTF-8, not empty, and not
/// "__metadata__".
[[nodiscard]] bool is_valid_tensor_name(std::string_view name);

/// Returns true if the file can be read and begins like a safetensors file: with a possible length
/// of a header, and `{`. The rest may still be damaged.
[[nodiscard]] bool has_safetensors_header(const std::string& path);

/// Reads a whole file. Returns an Error if the file is incomplete or malformed, has elements of
/// other types, does not match its `crc32`, or needs more memory than a ReadBudget allows. Other
/// tools write files without `crc32`, which are valid. For the tensors, takes no more memory than
/// the size of the file; for the header, up to about 128 bytes for each of its bytes. Does not
/// check the values of elements, which may be NaN.
[[nodiscard]] Result<File> read(const std::string& path);

}  // namespace starling::program::safetensors
