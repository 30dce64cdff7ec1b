/// Decodes packs: messages that contain several frames. The bodies of the frames are in the pack
/// itself or in the message's second part.
#include "starling/actor/wire/pack.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

Bytes pack_of(const std::vector<wire::Frame>& frames, wire::BodyPart body_part) {
  std::size_t size = wire::pack_prefix_size;
  for (const wire::Frame& frame : frames) size += wire::packed_size(frame, body_part);
  Bytes pack(size);
  std::byte* at = wire::write_pack_prefix(pack.data());
  for (const wire::Frame& frame : frames) at = wire::write_packed(frame, body_part, at);
  return pack;
}

/// Returns true if the pack can be opened. Ends the program unless the reader returns every
/// complete frame of the pack, unchanged.
bool read_pack(Input pack, Input second_part) {
  auto reader = wire::PackReader::open(pack, second_part);
  if (!reader) return false;
  std::vector<wire::Frame> frames;
  auto next_body = second_part.begin();
  while (const auto frame = reader->next()) {
    frames.push_back({.head = {frame->head.begin(), frame->head.end()}, .body = {}});
    if (frame->body.empty()) continue;
    frames.back().body.push_back({nullptr, frame->body});
    if (second_part.empty()) continue;
    require(frame->body.data() == &*next_body, "bodies follow one another");
    next_body += static_cast<std::ptrdiff_t>(frame->body.size());
  }
  const Bytes again =
      pack_of(frames, second_part.empty() ? wire::BodyPart::first : wire::BodyPart::second);
  require(again.size() <= pack.size() && std::ranges::equal(again, pack.first(again.size())),
          "packing the frames again gives the same bytes");
  const Input rest = pack.subspan(again.size());
  // The rest must be an incomplete frame: the pack lacks its end, or the second part its body.
  // Its first bytes are the lengths of its head and of its body.
  std::array<std::uint32_t, 2> lengths{};
  if (rest.size() < sizeof lengths) return true;
  std::memcpy(lengths.data(), rest.data(), sizeof lengths);
  const std::size_t next_frame_bytes =
      sizeof lengths + std::size_t{lengths[0]} + (second_part.empty() ? lengths[1] : 0);
  const auto second_part_left = static_cast<std::size_t>(second_part.end() - next_body);
  require(next_frame_bytes > rest.size() || (!second_part.empty() && lengths[1] > second_part_left),
          "no complete frame is skipped");
  return true;
}

}  // namespace

bool read(Input input) {
  const std::size_t half = input.size() / 2;
  const bool is_pack = read_pack(input, {});
  return read_pack(input.first(input.size() - half), input.last(half)) || is_pack;
}

std::vector<Bytes> seeds() {
  const wire::Frame small{.head = Bytes(3, std::byte{7}), .body = {}};
  const auto body = std::make_shared<const Bytes>(5, std::byte{9});
  const wire::Frame with_body{.head = Bytes(2, std::byte{8}), .body = {{body, *body}}};
  const std::vector<wire::Frame> all{small, with_body, {}, with_body};
  // read() takes the second half of an input as the second part. It begins with the bodies, whose
  // bytes are all 9.
  Bytes with_second_part = pack_of(all, wire::BodyPart::second);
  with_second_part.resize(2 * with_second_part.size(), std::byte{9});
  return {pack_of({}, wire::BodyPart::first), pack_of({small}, wire::BodyPart::first),
          pack_of(all, wire::BodyPart::first), with_second_part};
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
