/// Transcripts: a text file that lists the events of one core and their effects.
///
///     # A comment.
///     new worker id=0 workers=2 barrier=bsp owners=0,1     makes a core, replacing the one before
///     at 0s start                                          an event, see transcript.cpp
///     => send owner 0 pull worker=0 range=0 at=0           its effects, one on each line
///     at 5ms <- ack range=0 step=1                         a message, written as in the effects
///
/// With STARLING_REWRITE=1 in the environment, the test writes the present effects into the files:
/// read the difference before you commit it.
#pragma once

#include <string>
#include <string_view>

namespace starling::core {

/// Returns `text` with its effects replaced by those that its events have. A line that cannot be
/// read has the effect line "=> error: ...".
[[nodiscard]] std::string replay(std::string_view text);

}  // namespace starling::core
