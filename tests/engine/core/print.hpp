/// Converts effects and messages to one line of text each, as transcripts contain them.
#pragma once

#include <string>

#include "starling/engine/core/channel/channel.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/exchange/ownership/messages.hpp"

namespace starling::core {

/// The messages in transcripts.
using TranscriptMessage =
    AnyOf<Concat<Messages, TypeList<Pull, Value, Push, Ack, Snapshot, RangeState>>>;
using OwnershipEffect = ExchangeEffect<OwnershipContext::Messages>;

[[nodiscard]] std::string to_text(const Effect& effect);
[[nodiscard]] std::string to_text(const OwnershipEffect& effect);
[[nodiscard]] std::string to_text(const TranscriptMessage& message);
[[nodiscard]] std::string to_text(const ChannelEffect<std::string>& effect);

}  // namespace starling::core
