/// Converts effects and messages to one line of text each, as transcripts contain them.
#pragma once

#include <string>

#include "starling/engine/core/channel/channel.hpp"
#include "starling/engine/core/effect.hpp"

namespace starling::core {

[[nodiscard]] std::string to_text(const Effect& effect);
[[nodiscard]] std::string to_text(const Message& message);
[[nodiscard]] std::string to_text(const ChannelEffect<std::string>& effect);

}  // namespace starling::core
