/// Encodes and decodes slices of tensors. The archive gets the type, the number and the rows of the
/// elements; the elements themselves become an attachment. With this header, archive.hpp can encode
/// and decode the messages of engine/core that hold slices, by the lists of their fields.
#pragma once

#include "starling/actor/wire/archive.hpp"
#include "starling/engine/core/compact.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::core {

/// The first byte of an encoded slice is its element code. The code is 0 for an empty slice, else
/// the size of an element in bytes, 4 or 8. For elements in a compact form (compact.hpp), it is
/// `compact_floats`, with `halves_bit` if has_halves and with `sparse_bit` if is_sparse.
inline constexpr unsigned compact_bit = 1U << 4U;
inline constexpr unsigned compact_floats = sizeof(float) | compact_bit;
inline constexpr unsigned halves_bit = 1U << 5U;
inline constexpr unsigned sparse_bit = 1U << 6U;

/// Encodes the element code, the number of elements, the rows and, for a compact form, the number
/// of elements that the form contains. Attaches the elements, unless the slice is empty.
template <class A>
void save_slice(A& archive, const Slice& slice) {
  if (slice.travels_compact()) {
    const auto elements = slice.as<float>();
    const CompactForm form = compact_form(elements);
    const auto code = static_cast<std::uint8_t>(
        compact_floats | (form.has_halves ? halves_bit : 0U) | (form.is_sparse ? sparse_bit : 0U));
    archive(code, wire::to_count(slice.count), slice.rows, form.elements);
    const auto bytes = std::make_shared<const wire::Bytes>(to_compact(form, elements));
    archive.attach({bytes, *bytes});
    return;
  }
  const std::uint8_t width =
      slice.empty() ? 0 : static_cast<std::uint8_t>(slice.buffer->element_bytes());
  archive(width, wire::to_count(slice.count), slice.rows);
  if (width > 0) archive.attach({slice.buffer, slice.bytes()});
}

/// Decodes the elements of a slice in a compact form. Requires: `code`, slice.count and slice.rows
/// were decoded before.
template <class A>
void load_compact(A& archive, std::uint8_t code, Slice& slice) {
  CompactForm form{(code & halves_bit) != 0, (code & sparse_bit) != 0, 0};
  archive(form.elements);
  if ((code & ~(halves_bit | sparse_bit)) != compact_floats || slice.count == 0)
    throw wire::DecodeError{"holds values of an unknown element type"};
  if (form.is_sparse ? form.elements > slice.count : form.elements != slice.count)
    throw wire::DecodeError{"holds values in a compact form that is not valid"};
  const auto packed = archive.take_attached(compact_size(form, slice.count));
  archive.count_unpacked(slice.count * sizeof(float));
  auto buffer = Buffer::make<float>(slice.count);
  if (!from_compact(form, packed.bytes, buffer->template as<float>()))
    throw wire::DecodeError{"holds values in a compact form that is not valid"};
  slice.buffer = std::move(buffer);
  slice.is_compact = true;
}

/// Decodes a slice. If the attached bytes have an owner and are aligned, the slice is a view of
/// them and keeps their owner alive. Otherwise, the elements are copied. Elements in a compact form
/// are always expanded into a new buffer.
template <class A>
void load_slice(A& archive, Slice& slice) {
  std::uint8_t width = 0;
  std::uint32_t count = 0;
  archive(width, count, slice.rows);
  slice.offset = 0;
  slice.count = count;
  slice.buffer.reset();
  slice.is_compact = false;
  if ((width & compact_bit) != 0) return load_compact(archive, width, slice);
  const bool is_valid_width = count == 0 ? width == 0 : width == 4 || width == 8;
  if (!is_valid_width) throw wire::DecodeError{"holds values of an unknown element type"};
  if (width == 0) return;
  const wire::Attachment values = archive.take_attached(std::size_t{count} * width);
  if (values.owner && Buffer::can_view(values.bytes, width)) {
    slice.buffer = Buffer::view(values.owner, values.bytes, width);
    return;
  }
  auto buffer = Buffer::make(count, width);
  std::ranges::copy(values.bytes, buffer->bytes().begin());
  slice.buffer = std::move(buffer);
}

template <class A>
void serialize(A& archive, Slice& slice) {
  if constexpr (wire::is_encoder<A>)
    save_slice(archive, slice);
  else
    load_slice(archive, slice);
}

}  // namespace starling::core
