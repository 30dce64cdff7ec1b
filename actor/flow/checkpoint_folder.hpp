/// The folder of a checkpoint: a file for each part, and a manifest, which identifies the set that
/// was saved. Other processes may use the folder at the same time. Blocking; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "starling/actor/flow/output_folder.hpp"
#include "starling/base/result.hpp"

namespace starling::flow {

/// Tells checkpoints apart by how their records were made.
struct CheckpointIdentity {
  /// A hash of the lineage of the set, of the type of its records, and of its key.
  std::uint64_t fingerprint = 0;
  /// type_name() of the records.
  std::string record_type;
  /// The operations after the last shuffle.
  std::string operations;

  static constexpr auto fields(auto& m) {
    return std::tie(m.fingerprint, m.record_type, m.operations);
  }
};

/// The manifest: the content of the file `checkpoint`.
struct CheckpointManifest {
  CheckpointIdentity identity;
  Part parts = 0;
  std::uint64_t records = 0;
  /// The token of the temporary folder in which it was written.
  std::string token;

  static constexpr auto fields(auto& m) {
    return std::tie(m.identity, m.parts, m.records, m.token);
  }
};

/// Says whether a folder holds the checkpoint of a set. One member of a job looks once, and all
/// members use its answer, because the folder may change meanwhile.
struct CheckpointSearch {
  /// Why the folder can be neither read nor written; empty if it can.
  std::string error;
  /// Absolute; the same for all members.
  std::string path;
  CheckpointIdentity identity;
  /// Present if the folder holds the checkpoint of the set.
  std::optional<CheckpointManifest> found;
  /// The token with which the checkpoint is to be written.
  std::string token;
  /// The iteration of iterate() after which it was made.
  std::uint32_t iteration = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.error, m.path, m.identity, m.found, m.token, m.iteration);
  }
};

/// Looks for the checkpoint of a set. Also removes what killed writers left behind.
[[nodiscard]] CheckpointSearch find_checkpoint(const std::string& folder,
                                               CheckpointIdentity identity);

/// Returns the identity and the folder of the checkpoint after an iteration of iterate().
[[nodiscard]] CheckpointIdentity identity_of_iteration(CheckpointIdentity start,
                                                       std::uint32_t iteration);
[[nodiscard]] std::string folder_of_iteration(const std::string& folder, std::uint32_t iteration);
/// Looks for the checkpoint after the last iteration, up to `iterations`, that has one. Creates the
/// folder. `start` is the identity of the set before the first iteration.
[[nodiscard]] CheckpointSearch find_last_iteration(const std::string& folder,
                                                   const CheckpointIdentity& start,
                                                   std::uint32_t iterations);

/// Removes the checkpoints before `iteration` that belong to the iterate() of `start`. Requires:
/// all members of the job have read or written the one after `iteration`. Until then, lost parts
/// may be recomputed from the earlier ones.
void remove_iterations_before(const std::string& folder, const CheckpointIdentity& start,
                              std::uint32_t iteration);

/// Returns the writer of a new checkpoint.
[[nodiscard]] Result<OutputFolder> open_checkpoint(const CheckpointSearch& search);
/// Renames the temporary folder to its final name (the commit point). Does nothing if that was
/// done. Throws TaskFailure if it cannot be done.
/// Requires: the files of all parts were written.
[[nodiscard]] CheckpointManifest commit_checkpoint(const CheckpointSearch& search,
                                                   OutputFolder& output, Part parts,
                                                   std::uint64_t records);
/// Returns the path of a part's file.
[[nodiscard]] std::string checkpoint_file(const std::string& folder, Part part);

}  // namespace starling::flow
