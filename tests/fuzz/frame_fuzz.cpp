/// Decodes packets that members of a job send each other, and validates their messages.
#include "starling/actor/wire/frame.hpp"

#include <algorithm>
#include <memory>
#include <utility>
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

/// Copies all elements of `slice`, as a worker does that receives it.
void copy_values(core::RangeId range, const core::Slice& slice) {
  std::vector<float> copy(layout().ranges.at(range).count);
  const auto values = slice.as<float>();
  if (!slice.rows) {
    std::ranges::copy(values, copy.begin());
    return;
  }
  std::size_t i = 0;
  for (const std::uint32_t row : *slice.rows) copy.at(row) = values[i++];
}

/// The role of a member of a training job with this layout.
const core::AnyRole& role() {
  static const auto made = [] {
    core::TrainingOptions training;
    training.exchange.layout = std::make_shared<const core::Layout>(layout());
    training.exchange.applier = core::merge_applier<float>([](const auto&, auto, auto) {});
    return core::make_role(std::make_shared<const core::TrainingOptions>(std::move(training)),
                           {{}, members_max, nullptr});
  }();
  return made;
}

/// Requires that the validator does not fail on any message, and that the values of a valid one can
/// be copied.
void validate(const core::PeerMessage& peer_message) {
  for (const core::Configuration& configuration : configurations())
    for (const core::Member& member : configuration.members)
      if (core::is_valid({configuration, member.id, members_max}, role(), peer_message))
        if (const auto* value = std::get_if<core::Value>(&peer_message))
          copy_values(value->range, value->value);
}

}  // namespace

bool read(Input input) {
  const wire::FrameView frame = frame_in(input);
  const auto kind = wire::kind_of(frame);
  // Tensors in a compact form take up to 32 times their bytes.
  const auto decoded = with_bounded_heap(heap_bound(input.size()) + 32 * input.size(),
                                         [&] { return decode_envelope(frame); });
  if (!decoded) return false;
  require(kind.ok() && *kind == wire::Kind::envelope,
          "a frame that decodes as an envelope has that kind");
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
