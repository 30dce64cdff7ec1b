/// Checkpoints: the records of sets, written to files that outlive the program. Blocking.
///
///     auto words = engine.text(paths)->flat_map(words_of).reduce_by_key(std::plus<>{});
///     auto saved = checkpoint(words, "/data/words");  // computed and written, or only read
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/flow/checkpoint_file.hpp"
#include "starling/actor/flow/checkpoint_folder.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/flow/set.hpp"
#include "starling/engine/flow/values/type_name.hpp"

namespace starling::flow {

/// A chain (chain.hpp) that reads the records of a checkpoint. Each file holds one part.
/// Thread-safe.
template <class T>
class CheckpointChain {
 public:
  using Value = T;

  CheckpointChain(std::string folder, const CheckpointManifest& manifest)
      : folder_(std::make_shared<const std::string>(std::move(folder))),
        fingerprint_(manifest.identity.fingerprint),
        parts_(manifest.parts) {}

  [[nodiscard]] Part parts() const { return parts_; }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return {}; }
  void add_reads(Part, std::vector<StageRead>&) const {}
  [[nodiscard]] std::string operations() const { return "checkpoint"; }
  [[nodiscard]] std::uint64_t source_hash() const { return fingerprint_; }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    CheckpointReader reader{checkpoint_file(*folder_, part), fingerprint_, part};
    T record{};
    run_located(
        [&] {
          while (reader.next(record)) {
            task.count_read();
            if (!sink(std::move(record))) return;
          }
        },
        [&] { return reader.location(); });
  }

 private:
  std::shared_ptr<const std::string> folder_;
  std::uint64_t fingerprint_;
  Part parts_;
};

namespace detail {

/// The chain of a stage that has one task and no records: the task finds or commits a checkpoint.
/// It reads the outputs of the stage `read`, if that is not null.
class SingleTaskChain {
 public:
  using Value = bool;

  explicit SingleTaskChain(const char* name, StagePtr read = nullptr)
      : name_(name), read_(std::move(read)) {}

  [[nodiscard]] Part parts() const { return 1; }
  [[nodiscard]] std::vector<StagePtr> inputs() const {
    return read_ ? std::vector<StagePtr>{read_} : std::vector<StagePtr>{};
  }
  void add_reads(Part, std::vector<StageRead>& reads) const {
    if (read_) reads.push_back({read_, std::nullopt, 0});
  }
  [[nodiscard]] std::string operations() const { return name_; }
  template <class Sink>
  void run(Task&, Part, const Sink&) const {}

 private:
  const char* name_;
  StagePtr read_;
};

/// Runs `find()`, which returns a CheckpointSearch, as one task, so that all members of a job use
/// the same result. A member that calls this later gets this result too, even if another member has
/// written the folder meanwhile.
template <class F>
[[nodiscard]] Result<CheckpointSearch> search(Runner& runner, const F& find) {
  auto found = runner.run(make_stage(SingleTaskChain{"checkpoint"}, "find",
                                     [find](Task&, const SingleTaskChain&) { return find(); }));
  if (!found) return std::move(found).error();
  CheckpointSearch result = *static_cast<const CheckpointSearch*>(found->front().get());
  if (!result.error.empty()) return Error{result.error};
  return result;
}

/// Computes the set and writes its checkpoint.
template <class T, class C>
[[nodiscard]] Result<CheckpointManifest> write_checkpoint(const Set<T, C>& set,
                                                          const CheckpointSearch& search) {
  // If the temporary folder cannot be opened, the tasks fail, not this call: a member that runs no
  // task does not need the folder.
  auto output = open_checkpoint(search);
  const auto writer = [&output]() -> OutputFolder& {
    if (!output) throw TaskFailure{output.error()};
    return *output;
  };
  const auto write = [writer, fingerprint = search.identity.fingerprint](Task& task,
                                                                         const C& chain) {
    PartFile part_file = writer().open_part(task.part());
    CheckpointWriter file{part_file, fingerprint, task.part()};
    chain.run(task, task.part(), [&file](const T& record) {
      put(file.buffer(), record);
      file.end_record();
      return true;
    });
    file.finish();
    task.count_written(file.records(), file.bytes());
    return file.records();
  };
  const StagePtr written = make_stage(set.chain(), "checkpoint", write);
  const auto commit = [writer, written, &search](Task& task, const SingleTaskChain&) {
    std::uint64_t records = 0;
    const auto counts = task.outputs<std::uint64_t>(written);
    for (const std::uint64_t* count : counts) records += *count;
    auto manifest = commit_checkpoint(search, writer(), static_cast<Part>(counts.size()), records);
    return manifest;
  };
  auto done =
      set.runner()->run(make_stage(SingleTaskChain{"checkpoint", written}, "commit", commit));
  if (!done) return std::move(done).error();
  return *static_cast<const CheckpointManifest*>(done->front().get());
}

/// Returns a set that reads the checkpoint. If `search` has not found one, first computes `set` and
/// writes its checkpoint.
template <class T, class C>
[[nodiscard]] Result<Set<T, CheckpointChain<T>>> find_or_write(const Set<T, C>& set,
                                                               const CheckpointSearch& search) {
  auto manifest =
      search.found ? Result<CheckpointManifest>{*search.found} : write_checkpoint(set, search);
  if (!manifest) return std::move(manifest).error();
  return Set<T, CheckpointChain<T>>{set.runner(), CheckpointChain<T>{search.path, *manifest}};
}

/// Returns the identity of a set. Reads the values of collections, so it may take a moment.
template <class T, class C>
[[nodiscard]] CheckpointIdentity identity_of(const Set<T, C>& set, const std::string& key) {
  CheckpointIdentity identity{.record_type = type_name<T>(),
                              .operations = set.chain().operations()};
  const std::uint64_t lineage =
      lineage_hash(make_stage(set.chain(), "checkpoint", [](Task&, const C&) { return 0; }));
  identity.fingerprint = hash_of(std::tuple{lineage, identity.record_type, key});
  return identity;
}

}  // namespace detail

/// Computes the set and writes its records into a new folder, one file for each part. Returns a set
/// that reads these files and has the same records, so later plans begin at the files. The folder
/// appears complete or not at all.
///
/// If the folder already holds the checkpoint of the same set, nothing is computed, and the
/// returned set reads that checkpoint: so a program that was stopped resumes from it. Two sets are
/// the same if their operations, sources, numbers of parts, types of records and `key` are equal;
/// docs/map-reduce.md says how sources are compared. Functions are not compared: put everything
/// that they depend on, such as options of the program, into `key`.
///
/// Returns an Error if the folder exists and does not hold the checkpoint of this set (an empty
/// folder does not), if the folder cannot be written, or if a task fails. On several nodes, the
/// folder must be on a file system that all of them share.
template <class T, class C>
[[nodiscard]] Result<Set<T, CheckpointChain<T>>> checkpoint(const Set<T, C>& set,
                                                            const std::string& folder,
                                                            const std::string& key = {}) {
  const auto found = detail::search(
      *set.runner(), [&] { return find_checkpoint(folder, detail::identity_of(set, key)); });
  if (!found) return found.error();
  return detail::find_or_write(set, *found);
}

/// Where and how often iterate() writes checkpoints.
struct IterateCheckpoints {
  /// The folder of the checkpoints. The last two have a subfolder each, which is named for the
  /// number of finished iterations, such as `round-20`.
  std::string folder;
  /// The number of iterations from one checkpoint to the next; at least 1.
  std::uint32_t every = 10;
  /// As in checkpoint(). The operations of `step` are not compared either, so the key must change
  /// when `step`, or anything that it depends on, changes.
  std::string key = {};
};

/// Does what `set.iterate(iterations, step)` does. Also writes a checkpoint whenever the number of
/// finished iterations is a multiple of `checkpoints.every`, and keeps the last two checkpoints. A
/// program that was stopped resumes from the last checkpoint, and does not call `step` for the
/// iterations before it. The plans of later iterations begin at the last checkpoint. `step` must
/// not keep a set of an earlier iteration, because that set may read files that are removed.
template <class T, class C, class F>
[[nodiscard]] Result<Set<T>> iterate(const Set<T, C>& set, std::uint32_t iterations, const F& step,
                                     const IterateCheckpoints& checkpoints) {
  const std::uint32_t every = checkpoints.every;
  if (every == 0) return Error{"iterate(): checkpoints every 0 iterations; valid: 1 or more"};
  Set<T> current = set;
  const auto last = detail::search(*set.runner(), [&] {
    return find_last_iteration(checkpoints.folder, detail::identity_of(set, checkpoints.key),
                               iterations);
  });
  if (!last) return last.error();
  if (last->found) current = Set<T, CheckpointChain<T>>{set.runner(), {last->path, *last->found}};
  for (std::uint32_t iteration = last->iteration; iteration < iterations;) {
    const std::uint32_t end = iterations - iteration < every - iteration % every
                                  ? iterations
                                  : iteration - iteration % every + every;
    auto next = current.iterate(end - iteration, [&](const Set<T>& before, std::uint32_t i) {
      return Set<T>{step(before, iteration + i)};
    });
    if (!next || end % every != 0) return next;
    const auto found = detail::search(*set.runner(), [&] {
      const auto start = detail::identity_of(set, checkpoints.key);
      remove_iterations_before(checkpoints.folder, start, iteration);
      return find_checkpoint(folder_of_iteration(checkpoints.folder, end),
                             identity_of_iteration(start, end));
    });
    if (!found) return found.error();
    const auto saved = detail::find_or_write(*next, *found);
    if (!saved) return saved.error();
    current = *saved;
    iteration = end;
  }
  return current;
}

}  // namespace starling::flow
