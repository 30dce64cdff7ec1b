#include "starling/actor/wire/control.hpp"

#include "starling/actor/wire/framing.hpp"
#include "starling/actor/wire/message_codec.hpp"

namespace starling::wire {

Frame encode(const ControlMessage& message) {
  return encode_as(Kind::control, [&](Encoder& encoder) { encoder(message); });
}

Result<ControlMessage> decode_control(const FrameView& frame) {
  return decode_as<ControlMessage>(
      frame, Kind::control, [](Decoder& decoder, ControlMessage& message) { decoder(message); });
}

}  // namespace starling::wire
