/// Finds, writes and removes checkpoints. A checkpoint is a folder with a file for each part of a
/// set, and a manifest that identifies the set. The members of a job write it together. If two jobs
/// write the same folder at the same time, the later commit fails. Blocking; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "starling/actor/flow/output_folder.hpp"
#include "starling/base/result.hpp"

namespace starling::flow {

/// Identifies the set of a checkpoint. Only `fingerprint` is compared; error messages print all
/// fields.
struct CheckpointIdentity {
  /// A hash of the set's lineage, of its record type, and of the key that the program gave to
  /// checkpoint() or iterate(); for a checkpoint of iterate(), also of the iteration.
  std::uint64_t fingerprint = 0;
  /// type_name() of the records.
  std::string record_type;
  /// The set's operations since its last shuffle, such as `reduce_by_key | map`.
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
  /// The token of the temporary folder that became this checkpoint. By it, a member sees that its
  /// job has committed the checkpoint already.
  std::string token;

  static constexpr auto fields(auto& m) {
    return std::tie(m.identity, m.parts, m.records, m.token);
  }
};

/// The result of a search for the checkpoint of a set. One member of a job searches, and all
/// members use its result, because the folder may change between two searches.
struct CheckpointSearch {
  /// Why the job cannot use the folder; for example, it has the checkpoint of another set, its
  /// manifest is damaged, or it cannot be made. Empty if there is no error.
  std::string error;
  /// The absolute path of the checkpoint's folder; empty if find_last_iteration() finds no folder
  /// of an iteration.
  std::string path;
  CheckpointIdentity identity;
  /// Present if the folder holds the checkpoint of the set.
  std::optional<CheckpointManifest> found;
  /// The token of the temporary folder in which the job writes the checkpoint. Empty unless the
  /// folder of the checkpoint does not exist yet.
  std::string token;
  /// The number of iterations after which the checkpoint was made, if find_last_iteration() finds
  /// one; else 0.
  std::uint32_t iteration = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.error, m.path, m.identity, m.found, m.token, m.iteration);
  }
};

/// Looks for the checkpoint of a set in `folder`. If `folder` does not exist, removes the temporary
/// folders that killed writers of `folder` have left, and tests that a new temporary folder can be
/// made.
[[nodiscard]] CheckpointSearch find_checkpoint(const std::string& folder,
                                               CheckpointIdentity identity);

/// The next two functions return the identity and the folder of the checkpoint that iterate() makes
/// after `iteration` iterations. `start` is the identity of the set before the first iteration, and
/// `folder` is IterateCheckpoints::folder.
[[nodiscard]] CheckpointIdentity identity_of_iteration(CheckpointIdentity start,
                                                       std::uint32_t iteration);
[[nodiscard]] std::string folder_of_iteration(const std::string& folder, std::uint32_t iteration);
/// Looks for the latest checkpoint of iterate() after at most `iterations` iterations. Creates
/// `folder` if it does not exist. If the latest folder of an iteration is not a checkpoint of this
/// iterate(), the result is an error: the function does not look for an earlier one. `start` is the
/// identity of the set before the first iteration.
[[nodiscard]] CheckpointSearch find_last_iteration(const std::string& folder,
                                                   const CheckpointIdentity& start,
                                                   std::uint32_t iterations);

/// Removes the checkpoints that the iterate() of `start` made after fewer than `iteration`
/// iterations, and the rest of such checkpoints whose removal was interrupted. Ignores errors.
/// Requires: all members of the job have read or written the checkpoint after `iteration`
/// iterations. Before that, lost parts may be recomputed from earlier checkpoints.
void remove_iterations_before(const std::string& folder, const CheckpointIdentity& start,
                              std::uint32_t iteration);

/// Opens the temporary folder in which the members write the files of a new checkpoint. Requires:
/// find_checkpoint() has set `search.token`.
[[nodiscard]] Result<OutputFolder> open_checkpoint(const CheckpointSearch& search);
/// Writes the manifest, and renames the temporary folder to its final name, which commits the
/// checkpoint. Returns the manifest. If another member of the job has committed the checkpoint,
/// only returns its manifest. Throws TaskFailure if the checkpoint cannot be committed.
/// Requires: the files of all parts were written. `records` is the number of their records.
[[nodiscard]] CheckpointManifest commit_checkpoint(const CheckpointSearch& search,
                                                   OutputFolder& output, Part parts,
                                                   std::uint64_t records);
/// Returns the path of a part's file.
[[nodiscard]] std::string checkpoint_file(const std::string& folder, Part part);

}  // namespace starling::flow
