/// One array in NumPy's format (numpy.lib.format, versions 1 to 3), from wherever its bytes come.
/// Internal to models/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/source/raw.hpp"

namespace starling::models {

/// The bytes of one array, front to back.
struct NpyBytes {
  /// Fills `out` as far as the content goes and returns how far; less than all means the end.
  std::function<Result<std::size_t>(std::span<std::byte> out)> read;
  /// A bound on the bytes that can still follow.
  std::uint64_t content_max = 0;
  /// The file, and the array in it where there are more.
  std::string place;
};

struct NpyArray {
  std::string place;
  std::vector<std::uint64_t> shape;
  /// The elements are unsigned bytes.
  bool is_uint8 = false;
  /// In the order of C: the last axis runs fastest.
  std::vector<float> values;

  /// "[60000, 28, 28]".
  [[nodiscard]] std::string print_shape() const;
};

/// Reads all of one array of finite real numbers; refuses what follows it.
Result<NpyArray> read_npy_array(const NpyBytes& bytes);

/// Features and labels of one array each; no labels where `y` is null.
Result<RawTable> table_of(NpyArray x, NpyArray* y);

/// A table whose column of labels is the first or the last.
Result<RawTable> table_of_columns(NpyArray x, bool label_is_first);

}  // namespace starling::models
