/// Serialises slices of tensors: their description in the archive, their elements as an attachment.
/// With it, archive.hpp can serialise every message of engine/core by the list of its fields.
#pragma once

#include "starling/actor/wire/archive.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::core {

/// Encodes the bytes of one element (0 for an empty slice), the number of elements, and the rows.
template <class A>
void save_slice(A& archive, const Slice& slice) {
  const std::uint8_t width =
      slice.empty() ? 0 : static_cast<std::uint8_t>(slice.buffer->element_bytes());
  archive(width, wire::to_count(slice.count), slice.rows);
  if (width > 0) archive.attach({slice.buffer, slice.bytes()});
}

/// Decodes a slice. Its elements stay in the received bytes if these can be kept alive and are
/// aligned; otherwise they are copied.
template <class A>
void load_slice(A& archive, Slice& slice) {
  std::uint8_t width = 0;
  std::uint32_t count = 0;
  archive(width, count, slice.rows);
  const bool is_valid_width = count == 0 ? width == 0 : width == 4 || width == 8;
  if (!is_valid_width) throw wire::DecodeError{"holds values of an unknown element type"};
  slice.offset = 0;
  slice.count = count;
  slice.buffer.reset();
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
