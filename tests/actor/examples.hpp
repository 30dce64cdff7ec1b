/// One message of each kind, with something in every field.
#pragma once

#include <span>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/engine/core/letter.hpp"

namespace starling::wire {

/// At least one of each kind, tensors of both element types, with and without rows.
std::vector<core::Letter> example_letters();

/// At least one of each kind.
std::vector<ControlMessage> example_control_messages();

/// A packet of `letter`, or of none.
core::Envelope envelope_of(const core::Letter* letter);

template <class T>
core::Slice slice_of(std::vector<T> values, core::Rows rows = nullptr) {
  const auto buffer = core::Buffer::copy_of<T>(std::span<const T>{values});
  return {buffer, 0, values.size(), std::move(rows)};
}

}  // namespace starling::wire
