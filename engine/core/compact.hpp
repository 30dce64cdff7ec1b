/// The compact form in which a slice of floats travels if many of its elements are 0, or if the
/// lower 16 bits of all are 0, as in compressed gradients. The receiver gets the same bits.
///
///     halves   the upper 16 bits of each element; the lower ones are 0
///     sparse   a mask with one bit for each element, 0 if all bits of the element are 0; then the
///              elements whose mask bit is 1
///
/// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starling::core {

/// How the elements of a slice are written: `halves`, `sparse`, both, or neither.
struct CompactForm {
  bool has_halves = false;
  bool is_sparse = false;
  /// The number of elements that the form contains: all, or those whose mask bit is 1.
  std::uint32_t elements = 0;

  bool operator==(const CompactForm&) const = default;
};

/// Returns the form in which the elements take the fewest bytes.
[[nodiscard]] CompactForm compact_form(std::span<const float> elements);

/// Returns the size of `count` elements in this form, in bytes: a multiple of 4.
[[nodiscard]] std::size_t compact_size(const CompactForm& form, std::size_t count);

/// Returns the bytes of the elements in this form. Requires: form == compact_form(elements).
[[nodiscard]] std::vector<std::byte> to_compact(const CompactForm& form,
                                                std::span<const float> elements);

/// Decodes into `out` what to_compact() returned for out.size() elements. Returns false for bytes
/// that it cannot have returned. Requires: bytes.size() == compact_size(form, out.size()).
[[nodiscard]] bool from_compact(const CompactForm& form, std::span<const std::byte> bytes,
                                std::span<float> out);

}  // namespace starling::core
