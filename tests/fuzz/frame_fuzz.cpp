/// Packets of a job's members, as a node receives them, and the door that their letters come to.
#include "starling/actor/wire/frame.hpp"

#include <optional>

#include "starling/engine/core/door.hpp"
#include "tests/actor/examples.hpp"
#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

constexpr core::WorkerId members_max = 16;

const core::Configuration& configuration() {
  static const auto now = core::first_configuration(
      {{0, 1, true, true}, {3, 2, true, true}, {9, 4, true, true}}, 12, 2);
  return now;
}

/// Whatever is said may be judged.
void knock(const core::Letter& letter) {
  for (const core::Member& member : configuration().members)
    for (const std::optional<core::WorkerId> coordinator :
         {std::optional<core::WorkerId>{}, std::optional<core::WorkerId>{3}})
      (void)core::may_say({configuration(), member.id, coordinator, members_max}, letter);
}

}  // namespace

bool read(Input input) {
  const wire::FrameView frame = frame_in(input);
  const auto kind = wire::kind_of(frame);
  const auto decoded = bounded(heap_bound(input.size()), [&] { return decode_envelope(frame); });
  if (!decoded) return false;
  require(kind.ok() && *kind == wire::Kind::envelope, "what is decoded is of that kind");
  require_same(wire::encode(decoded->job, decoded->node, decoded->envelope), frame);
  const auto& letter = decoded->envelope.packet.payload;
  if (letter && *letter) knock(**letter);
  return true;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all{input_of(wire::encode(1, 2, wire::envelope_of(nullptr)))};
  for (const auto& letter : wire::example_letters())
    all.push_back(input_of(wire::encode(1, 2, wire::envelope_of(&letter))));
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
