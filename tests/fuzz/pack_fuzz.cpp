/// Several small frames in one message.
#include "starling/actor/wire/pack.hpp"

#include <vector>

#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

Bytes pack_of(const std::vector<wire::Frame>& frames) {
  std::size_t size = wire::pack_prefix;
  for (const wire::Frame& frame : frames) size += wire::packed_size(frame);
  Bytes pack(size);
  std::byte* at = wire::begin_pack(pack.data());
  for (const wire::Frame& frame : frames) at = wire::put_packed(frame, at);
  return pack;
}

}  // namespace

bool read(Input input) {
  auto rest = wire::packed_in(input);
  if (!rest) return false;
  std::vector<wire::Frame> frames;
  while (const auto frame = wire::take_packed(*rest)) {
    frames.push_back({.head = {frame->head.begin(), frame->head.end()}, .body = {}});
    if (!frame->body.empty()) frames.back().body.push_back({nullptr, frame->body});
  }
  const Bytes again = pack_of(frames);
  require(again.size() + rest->size() == input.size(), "no byte is taken twice or passed over");
  require(std::ranges::equal(again, input.first(again.size())), "frames are packed as they were");
  return true;
}

std::vector<Bytes> seeds() {
  const wire::Frame small{.head = Bytes(3, std::byte{7}), .body = {}};
  const auto owner = std::make_shared<const Bytes>(5, std::byte{9});
  const wire::Frame with_body{.head = Bytes(2, std::byte{8}), .body = {{owner, *owner}}};
  return {pack_of({}), pack_of({small}), pack_of({small, with_body, {}, with_body})};
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
