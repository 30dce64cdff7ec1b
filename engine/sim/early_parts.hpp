/// When simulated workers have parts of an update.
#pragma once

namespace starling::sim {

/// Returns the share of a step's time after which a share `computed` of its gradient is final. The
/// forward pass takes a third of the step, and has no gradient; the backward pass takes twice as
/// long, in equal time for each element.
[[nodiscard]] constexpr double share_of_time(double computed) { return (1 + 2 * computed) / 3; }

}  // namespace starling::sim
