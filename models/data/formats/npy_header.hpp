/// Parses the header of an array in NumPy's format, a dictionary in Python's notation. Internal to
/// models/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

/// The type of the elements, which NumPy writes as `<f4` and the like.
struct NpyType {
  /// `f` (float), `i` (signed), `u` (unsigned) or `b` (bool).
  char kind = 'f';
  /// The size of an element, in bytes.
  std::size_t bytes = 4;
  bool is_big_endian = false;
};

/// The content of an array's header.
struct NpyHeader {
  NpyType type;
  /// True if the values are column-major: the index of the first axis changes fastest.
  bool is_fortran = false;
  /// The number of elements along each axis.
  std::vector<std::uint64_t> shape;
};

/// Reads text such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`. Errors name no
/// file: they begin with "its header" or "its elements", so that the caller can put the name in
/// front.
Result<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace starling::models
