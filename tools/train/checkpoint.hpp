/// The whole state of a job in a file, to go on from: a model file that also holds the optimiser's
/// slots, the ranges' counters and how far each worker was. Blocking.
///
/// Beside the model's tensors stand
/// - starling.slots   [slots, parameters]: optimiser state, slot by slot;
/// - starling.ranges  [ranges, 3]: updates, samples and round of each range;
/// - starling.ledger  [ranges, workers, 3]: incarnation, step and samples of each worker in each
/// range.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/tools/train/model_file.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// The keys and values that must be the same for a job to go on as if it had never stopped.
using Agreement = std::vector<std::pair<std::string, std::string>>;

/// Returns the agreement of a job. `request` is its data request, with the scale that was chosen;
/// `train` is its training data.
[[nodiscard]] Agreement agreement_of(const Running& job, const DataRequest& request,
                                     const AnyData& train);

/// Hashes all that a job resumes from; 0 for no states.
[[nodiscard]] std::uint64_t fingerprint(const std::vector<core::RangeState>& states);

[[nodiscard]] Result<void> write_checkpoint(const std::string& path, const ModelNotes& notes,
                                            const AnyModel& model, const Running& job,
                                            const Agreement& agreement,
                                            const std::vector<core::RangeState>& states);

/// Reads the ranges' states. Refuses the checkpoint of another job, naming the key, and states that
/// no job of this kind can have: values that are not finite, and ledgers that contradict one
/// another, the counters of their range or the batches that the steps were made of.
[[nodiscard]] Result<std::vector<core::RangeState>> read_checkpoint(const std::string& path,
                                                                    const AnyModel& model,
                                                                    const Running& job,
                                                                    const Agreement& agreement,
                                                                    Trust trust = Trust::checked);

}  // namespace starling::program
