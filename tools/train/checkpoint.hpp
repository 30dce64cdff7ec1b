/// Writes and reads checkpoints: files from which a job can resume. A checkpoint is a model file
/// that also holds the optimiser's slots, the ranges' counters and each worker's step. Blocking.
///
/// Beside the model's tensors, it has these:
/// - starling.slots   [slots, parameters]: the optimiser's state, which has `slots` values for each
/// parameter;
/// - starling.ranges  [ranges, 3]: updates, samples and round of each range;
/// - starling.ledger  [ranges, workers, 3]: incarnation, step and samples of each worker in each
/// range;
/// - starling.deals   [numbers]: only if the workers have changed, how samples were dealt before:
/// for each former deal, the first epoch, the batch (0 if sizes differ), the samples, the number
/// of workers, the steps and the samples of each, and, if the batch is 0, the batch size of each
/// (models::FormerDeal).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/tools/train/model_file.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// The settings of a job that decide its result, as keys and values. A job with the identity of the
/// one that wrote a checkpoint resumes as if it had never stopped. A job that learns by gradients
/// may have other workers, another batch, mode, number of owners or barrier: then the samples that
/// are left of the epochs begun are dealt anew, and all workers go on from one step.
using JobIdentity = std::vector<std::pair<std::string, std::string>>;

/// Returns the identity of a job. `request` is its data request with the scale that was chosen, and
/// `train_hash` is ModelNotes::train_hash. The rows of a table identify the data, not the path from
/// which they were read. The test data are not part of the identity.
[[nodiscard]] JobIdentity job_identity_of(const ResolvedJob& job, const DataRequest& request,
                                          std::optional<std::uint64_t> train_hash);

/// Returns a hash of the states from which a job resumes; 0 if there are none.
[[nodiscard]] std::uint64_t fingerprint(const std::vector<core::RangeState>& states);

/// Replaces the file `path` as a whole, or leaves it as it was. `updates` is the number of updates
/// of all workers, present and former, that `states` contain.
[[nodiscard]] Result<void> write_checkpoint(const std::string& path, const ModelNotes& notes,
                                            const ModelDescription& model, const ResolvedJob& job,
                                            const JobIdentity& identity,
                                            const std::vector<core::RangeState>& states,
                                            std::uint64_t updates);

/// The state from which a job goes on.
struct Checkpoint {
  std::vector<core::RangeState> states;
  std::vector<models::FormerDeal> former_deals;
  /// Says how this job differs from the one that wrote the checkpoint, and what follows; empty if
  /// it does not differ.
  std::string changes;
  /// The number of updates of all workers, present and former, that `states` contain. If a file of
  /// an older version does not give it, this is the sum of the steps of the writer's workers.
  std::uint64_t updates = 0;
};

/// Reads the states of all ranges. Refuses the checkpoint of a job whose identity differs in a key
/// that must be equal (see JobIdentity); the error names the key. Refuses states that no job with
/// the writer's identity can have: values that are not finite, and ledgers that contradict each
/// other, the counters of their range or the batch size.
[[nodiscard]] Result<Checkpoint> read_checkpoint(const std::string& path, const AnyModel& model,
                                                 const ResolvedJob& job,
                                                 const JobIdentity& identity,
                                                 Trust trust = Trust::checked);

/// Returns Checkpoint::updates of the file, without the checks of read_checkpoint(). Returns
/// nothing if the file cannot be read, or if a version that did not save this number wrote it.
[[nodiscard]] std::optional<std::uint64_t> updates_in(const std::string& path);

}  // namespace starling::program
