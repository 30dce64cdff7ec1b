/// Reads one array in NumPy's format (numpy.lib.format, versions 1 to 3) from any source of bytes.
/// Internal to models/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starling/base/mapped_file.hpp"
#include "starling/base/result.hpp"
#include "starling/models/data/source/raw_table.hpp"

namespace starling::models {

/// A source of the bytes of one array.
struct NpyByteSource {
  /// Reads the next bytes into `out` and returns their number; fewer than out.size() only at the
  /// end of the content.
  std::function<Result<std::size_t>(std::span<std::byte> out)> read;
  /// An upper bound on the number of bytes of the content.
  std::uint64_t content_max = 0;
  /// The name of the file and, for an archive, of the array in it; for messages.
  std::string name;
};

struct NpyArray {
  /// As NpyByteSource::name.
  std::string name;
  std::vector<std::uint64_t> shape;
  /// True if the file stores the elements as unsigned bytes.
  bool is_uint8 = false;
  /// Row-major: the index of the last axis changes fastest. Empty if `file` is set.
  std::vector<float> values;
  /// The file that has the values, if they were left in it; else null.
  std::shared_ptr<const MappedFile> file = nullptr;
  std::span<const float> values_in_file = {};

  /// Returns the shape as text, such as "[60000, 28, 28]".
  [[nodiscard]] std::string print_shape() const;
  /// The number of values.
  [[nodiscard]] std::size_t size() const { return file ? values_in_file.size() : values.size(); }
};

/// Reads one array of finite real numbers. Refuses further bytes after the array.
Result<NpyArray> read_npy_array(const NpyByteSource& source);

/// Maps the file of one array, without reading its values, which may be any floats. Refuses arrays
/// that are not stored as a Table stores its rows.
Result<NpyArray> map_npy_array(const std::string& path);

/// Makes a table of the features `x` and the labels `y`, whose values are moved out; without labels
/// if `y` is null.
Result<RawTable> make_raw_table(NpyArray x, NpyArray* y);

/// Makes a table of `x`, whose first or last column holds the labels.
Result<RawTable> make_raw_table_with_label_column(NpyArray x, bool label_is_first);

}  // namespace starling::models
