/// Named tensors in a file, in the format of https://github.com/huggingface/safetensors: 8 bytes
/// little-endian header length, a JSON header, the tensors' bytes without gaps. Blocking; any
/// thread.
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

/// The types of the format that Starling reads; it writes the first three.
enum class Dtype { f32, f64, u64, u8, i32, i64 };

template <class T>
inline constexpr Dtype dtype_of = sizeof(T) == 4       ? Dtype::f32
                                  : T(1) / T(2) != T() ? Dtype::f64
                                                       : Dtype::u64;

[[nodiscard]] std::string_view print(Dtype dtype);
[[nodiscard]] std::size_t size_of(Dtype dtype);

/// A tensor to be written; the bytes stay the caller's.
struct View {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// A tensor of T over `values`. Requires: as many values as the shape says.
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
  /// By their place in the file.
  std::vector<Tensor> tensors;
  /// Whether the file had a `crc32`, which was right.
  bool is_checked = false;

  /// Returns the tensor of that name; null where there is none.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

/// Replaces `path` as a whole or leaves it as it was (see replace_file). Tensors of wide elements
/// come first, so that each is aligned to its element. The metadata also hold `crc32`, a sum over
/// all that the file says. Requires: each name can_name(), none twice.
[[nodiscard]] Result<void> write(const std::string& path, const Metadata& metadata,
                                 std::span<const View> tensors);

/// True where a tensor can have this name.
[[nodiscard]] bool can_name(std::string_view name);

/// True where the file begins as one of this format does; a damaged one may, too.
[[nodiscard]] bool begins_well(const std::string& path);

/// Refuses anything but a complete, well-formed file of tensors of these types, and one that is not
/// what its `crc32` says; files of other tools have none. Never allocates more than a small
/// multiple of the file's size. Values may be anything, NaN too.
[[nodiscard]] Result<File> read(const std::string& path);

}  // namespace starling::program::safetensors
