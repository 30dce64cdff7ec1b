/// Example messages with values in all their fields.
#pragma once

#include <span>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/engine/core/member/peer_message.hpp"

namespace starling::wire {

/// Returns at least one message of each kind, with tensors of both element types, with and without
/// rows, and in each compact form.
std::vector<core::PeerMessage> example_messages();

/// Returns at least one control message of each kind.
std::vector<ControlMessage> example_control_messages();

/// Returns an envelope with a packet that contains `peer_message`, or no message if it is null.
core::Envelope envelope_of(const core::PeerMessage* peer_message);

/// Returns a tensor with these values, or, if `rows` is given, the values of these rows.
template <class T>
core::Slice slice_of(std::vector<T> values, core::Rows rows = nullptr) {
  const auto buffer = core::Buffer::copy_of<T>(std::span<const T>{values});
  return {buffer, 0, values.size(), std::move(rows)};
}

}  // namespace starling::wire
