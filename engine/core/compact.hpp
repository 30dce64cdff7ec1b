/// The compact form in which a slice of floats travels if most of its elements are 0, or have few
/// digits, as compressed gradients have. Nothing is rounded: the receiver gets the same bits.
///
///     halves   the upper 16 bits of each element; the lower ones are 0
///     sparse   one bit for each element, which is set if any of the element's bits is set; then
///              the elements whose bit is set
///
/// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starling::core {

struct CompactForm {
  bool has_halves = false;
  bool is_sparse = false;
  /// The number of elements that the form contains: of all, or of those of which a bit is set.
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

/// Sets all elements of `out` from bytes that to_compact() returned for as many. Returns false for
/// bytes that it does not return. Requires: bytes.size() == compact_size(form, out.size()).
[[nodiscard]] bool from_compact(const CompactForm& form, std::span<const std::byte> bytes,
                                std::span<float> out);

}  // namespace starling::core
