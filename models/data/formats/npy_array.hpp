/// Reads one array in NumPy's format (numpy.lib.format, versions 1 to 3) from any source of bytes.
/// Internal to models/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/source/raw_table.hpp"

namespace starling::models {

/// Where the bytes of one array come from.
struct NpyBytes {
  /// Reads the next bytes into `out` and returns their number; fewer than out.size() only at the
  /// end of the content.
  std::function<Result<std::size_t>(std::span<std::byte> out)> read;
  /// A bound on the number of bytes of the content.
  std::uint64_t content_max = 0;
  /// The file, and the array's name in it if the file is an archive; for messages.
  std::string name;
};

struct NpyArray {
  /// As NpyBytes::name.
  std::string name;
  std::vector<std::uint64_t> shape;
  /// Whether the file stores the elements as unsigned bytes.
  bool is_uint8 = false;
  /// Row-major: the index of the last axis changes fastest.
  std::vector<float> values;

  /// "[60000, 28, 28]".
  [[nodiscard]] std::string print_shape() const;
};

/// Reads one array of finite real numbers. Refuses bytes that follow it.
Result<NpyArray> read_npy_array(const NpyBytes& bytes);

/// Makes a table of the features `x` and the labels `y`; without labels if `y` is null.
Result<RawTable> make_table(NpyArray x, NpyArray* y);

/// Makes a table of `x`, whose first or last column holds the labels.
Result<RawTable> make_table_with_label_column(NpyArray x, bool label_is_first);

}  // namespace starling::models
