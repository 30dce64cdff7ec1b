/// Transcripts: a text file that lists the events of one core and their effects.
///
///     # A comment.
///     new worker id=0 workers=2 barrier=bsp owners=0,1     makes a core, replacing an earlier one
///     at 0s start                                          an event; transcript.cpp lists them
///     => send owner 0 pull worker=0 range=0 at=0           an effect of the event above
///     at 5ms <- ack range=0 step=1                         an event: the core receives a message
///
/// With STARLING_REWRITE=1 in the environment, the test writes the effects that the cores have now
/// into the files. Review the difference before you commit it.
#pragma once

#include <string>
#include <string_view>

namespace starling::core {

/// Returns `text` with its effect lines replaced by the effects that its events have now. A line
/// that cannot be read is followed by "=> error: ...".
[[nodiscard]] std::string replay(std::string_view text);

}  // namespace starling::core
