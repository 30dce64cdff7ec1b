/// Transcripts: a text file that lists the events of one core and their effects.
///
///     # A comment.
///     new worker id=0 workers=2 barrier=bsp owners=0,1     a fresh core; others before it are gone
///     at 0s start                                          an event, see transcript.cpp
///     => send owner 0 pull worker=0 range=0 at=0           its effects, one a line
///     at 5ms <- ack range=0 step=1                         a message, written as in effects
///
/// STARLING_REWRITE=1 in the environment writes the effects as they are into the files: look at the
/// difference before you believe it.
#pragma once

#include <string>
#include <string_view>

namespace starling::core {

/// Returns `text` with the effects that its events have. A line that cannot be read gets the effect
/// line "=> error: ...".
[[nodiscard]] std::string replay(std::string_view text);

}  // namespace starling::core
