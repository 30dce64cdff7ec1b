/// Serialises slices of tensors: their description in the archive, their elements as an attachment.
/// With it, archive.hpp can serialise every message of engine/core by the list of its fields.
#pragma once

#include "starling/actor/wire/archive.hpp"
#include "starling/engine/core/compact.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::core {

/// The first byte of an encoded slice is the bytes of an element, 4 or 8, with these bits if the
/// elements are in a compact form. It is 0 for an empty slice.
inline constexpr unsigned compact_bit = 1U << 4U;
inline constexpr unsigned compact_floats = sizeof(float) | compact_bit;
inline constexpr unsigned halves_bit = 1U << 5U;
inline constexpr unsigned sparse_bit = 1U << 6U;

/// Encodes the code of the elements, their number, the rows and, in a compact form, the number of
/// elements that the form contains.
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

/// Decodes elements in a compact form. Requires: the code, the number and the rows were decoded.
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

/// Decodes a slice. Its elements stay in the received bytes if these can be kept alive and are
/// aligned; otherwise, or if they are in a compact form, they are copied.
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
