/// The folder of a checkpoint: a file for each part, and the file `checkpoint`, which says of what
/// it is. Other processes may use the folder at the same time. Blocking; thread-safe.
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
  std::string records;
  /// The operations after the last shuffle.
  std::string operations;

  static constexpr auto fields(auto& m) { return std::tie(m.fingerprint, m.records, m.operations); }
};

/// The content of the file `checkpoint`.
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

/// Says whether a folder holds the checkpoint of a set. All members of a job act on the same one,
/// because it is the result of an action: the folder may change while they run.
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
  /// The round of iterate() after which it was made.
  std::uint32_t round = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.error, m.path, m.identity, m.found, m.token, m.round);
  }
};

/// Looks for the checkpoint of a set. Also removes what writers have left of it that were killed.
[[nodiscard]] CheckpointSearch find_checkpoint(const std::string& folder,
                                               CheckpointIdentity identity);

/// The checkpoint after a round of iterate().
[[nodiscard]] CheckpointIdentity identity_of_round(CheckpointIdentity start, std::uint32_t round);
[[nodiscard]] std::string folder_of_round(const std::string& folder, std::uint32_t round);
/// Looks for the checkpoint after the last round, up to `rounds`, that has one. Creates the folder.
/// `start` is the identity of the set before the first round.
[[nodiscard]] CheckpointSearch find_last_round(const std::string& folder,
                                               const CheckpointIdentity& start,
                                               std::uint32_t rounds);

/// Removes the checkpoints after earlier rounds of this iteration. Requires: all members of the job
/// have read or written the one after `round`. Until then, a lost part may be made of them again.
void remove_rounds_before(const std::string& folder, const CheckpointIdentity& start,
                          std::uint32_t round);

/// Returns the writer of a new checkpoint.
[[nodiscard]] Result<OutputFolder> open_checkpoint(const CheckpointSearch& search);
/// Gives the folder its name, unless that was done. Throws TaskFailure if it cannot be done.
/// Requires: the files of all parts were written.
[[nodiscard]] CheckpointManifest commit_checkpoint(const CheckpointSearch& search,
                                                   OutputFolder& output, Part parts,
                                                   std::uint64_t records);
/// Returns the path of a part's file.
[[nodiscard]] std::string checkpoint_file(const std::string& folder, Part part);

}  // namespace starling::flow
