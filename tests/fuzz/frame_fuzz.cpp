/// Decodes packets of a job's members as a node receives them, and validates their messages.
#include "starling/actor/wire/frame.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include "starling/engine/core/member/message_validator.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

constexpr core::MemberId members_max = 16;

/// One configuration without a coordinator, and one with a coordinator.
const std::vector<core::Configuration>& configurations() {
  static const auto all = [] {
    std::vector<core::Configuration> made;
    for (const bool coordinated : {false, true})
      made.push_back(core::first_configuration(
          {{0, 1, true, true}, {3, 2, true, true}, {9, 4, true, true}}, 12, 2, coordinated));
    return made;
  }();
  return all;
}

/// A layout of 12 small ranges, of which the last 6 have rows.
const core::Layout& layout() {
  static const auto made = [] {
    core::Layout all;
    for (core::RangeId range = 0; range < 12; ++range)
      all.ranges.push_back({0, std::size_t{2} + range, range < 6 ? 0U : 1U, {}});
    return all;
  }();
  return made;
}

/// Reads all elements of `slice`, in the rows that it names.
void walk(core::RangeId range, const core::Slice& slice) {
  std::vector<float> into(layout().ranges.at(range).count);
  const auto from = slice.as<float>();
  if (!slice.rows) {
    std::ranges::copy(from, into.begin());
    return;
  }
  std::size_t at = 0;
  for (const std::uint32_t row : *slice.rows) into.at(row) = from[at++];
}

/// Requires that the validator can check any message, and that the tensors of a valid one can be
/// read.
void validate(const core::PeerMessage& peer_message) {
  for (const core::Configuration& now : configurations())
    for (const core::Member& member : now.members)
      if (core::MessageValidator{now, member.id, members_max, layout(), sizeof(float)}.is_valid(
              peer_message))
        if (const auto* value = std::get_if<core::Value>(&peer_message))
          walk(value->range, value->value);
}

}  // namespace

bool read(Input input) {
  const wire::FrameView frame = frame_in(input);
  const auto kind = wire::kind_of(frame);
  const auto decoded = bounded(heap_bound(input.size()), [&] { return decode_envelope(frame); });
  if (!decoded) return false;
  require(kind.ok() && *kind == wire::Kind::envelope, "what is decoded is of that kind");
  require_same(wire::encode(decoded->job, decoded->node, decoded->envelope), frame);
  const auto& peer_message = decoded->envelope.packet.payload;
  if (peer_message) {
    require(*peer_message != nullptr, "a payload is a message");
    (void)core::payload_bytes(*peer_message);
    validate(**peer_message);
  }
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all{input_of(wire::encode(1, 2, wire::envelope_of(nullptr)))};
  for (const auto& peer_message : wire::example_messages())
    all.push_back(input_of(wire::encode(1, 2, wire::envelope_of(&peer_message))));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
