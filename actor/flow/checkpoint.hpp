/// Checkpoints: data sets in files, which outlive the program. Blocking.
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

/// The records in the files of a checkpoint, each of which is one part. Thread-safe.
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

/// One task beside the parts of a data set, which may read the outputs of a stage.
class CheckpointStep {
 public:
  using Value = bool;

  explicit CheckpointStep(const char* name, StagePtr read = nullptr)
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

/// Runs `find()`, which returns a CheckpointSearch, as a task, so that all members of a job have
/// the same result, also those that ask when the folder is written.
template <class F>
[[nodiscard]] Result<CheckpointSearch> search(Runner& runner, const F& find) {
  auto found = runner.run(make_stage(CheckpointStep{"checkpoint"}, "find",
                                     [find](Task&, const CheckpointStep&) { return find(); }));
  if (!found) return std::move(found).error();
  CheckpointSearch result = *static_cast<const CheckpointSearch*>(found->front().get());
  if (!result.error.empty()) return Error{result.error};
  return result;
}

/// Computes the set and writes its checkpoint.
template <class T, class C>
[[nodiscard]] Result<CheckpointManifest> write_checkpoint(const Set<T, C>& set,
                                                          const CheckpointSearch& search) {
  // Only tasks report that it could not be opened: a member without tasks may do without.
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
  const auto commit = [writer, written, &search](Task& task, const CheckpointStep&) {
    std::uint64_t records = 0;
    const auto counts = task.outputs<std::uint64_t>(written);
    for (const std::uint64_t* count : counts) records += *count;
    auto manifest = commit_checkpoint(search, writer(), static_cast<Part>(counts.size()), records);
    return manifest;
  };
  auto done =
      set.runner()->run(make_stage(CheckpointStep{"checkpoint", written}, "commit", commit));
  if (!done) return std::move(done).error();
  return *static_cast<const CheckpointManifest*>(done->front().get());
}

/// Reads the checkpoint that was found, or writes it.
template <class T, class C>
[[nodiscard]] Result<Set<T, CheckpointChain<T>>> read_or_write(const Set<T, C>& set,
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

/// Computes the set and writes it into a new folder, a file for each part. Returns the same records
/// as a set that reads these files, so later plans begin there. The folder appears complete or not
/// at all.
///
/// A folder that has the checkpoint of the same set is read instead, so a program that was stopped
/// resumes from there. A set is the same if it has the same operations on the same sources, parts,
/// type of records and `key`. Functions cannot be compared: all that they depend on, such as the
/// options of the program, belongs into `key`.
///
/// Returns an Error if the folder holds anything else, or if it cannot be written. On several
/// nodes, it must be on a file system that all of them share.
template <class T, class C>
[[nodiscard]] Result<Set<T, CheckpointChain<T>>> checkpoint(const Set<T, C>& set,
                                                            const std::string& folder,
                                                            const std::string& key = {}) {
  const auto found = detail::search(
      *set.runner(), [&] { return find_checkpoint(folder, detail::identity_of(set, key)); });
  if (!found) return found.error();
  return detail::read_or_write(set, *found);
}

struct IterateCheckpoints {
  /// Gets a folder for each of the last two checkpoints, such as `round-20`.
  std::string folder;
  /// The iterations from one checkpoint to the next; above 0.
  std::uint32_t every = 10;
  /// As in checkpoint().
  std::string key = {};
};

/// Does what `set.iterate(iterations, step)` does, and writes a checkpoint after each
/// `checkpoints.every` iterations; keeps the last two. So a program that was stopped resumes from
/// the last of them, and the plans of later iterations do not have the iterations before it. `step`
/// is not called for iterations before the last checkpoint. It may keep no set of an earlier
/// iteration.
template <class T, class C, class F>
[[nodiscard]] Result<Set<T>> iterate(const Set<T, C>& set, std::uint32_t iterations, const F& step,
                                     const IterateCheckpoints& checkpoints) {
  const std::uint32_t every = checkpoints.every;
  if (every == 0) return Error{"iterate(): checkpoints every 0 rounds; valid: 1 or more"};
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
    const auto saved = detail::read_or_write(*next, *found);
    if (!saved) return saved.error();
    current = *saved;
    iteration = end;
  }
  return current;
}

}  // namespace starling::flow
