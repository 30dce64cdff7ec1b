/// The map-reduce engine: typed data sets in one process, whose parts are computed by several
/// threads. Sets, and what they offer, are in starling/engine/flow/set.hpp.
///
///     auto engine = starling::flow::MapReduce::make({.threads = 8}).value();
///     auto squares = engine.generate(1000, [](std::uint64_t i) { return i * i; });
///     auto sum = squares.filter([](std::uint64_t x) { return x % 2 == 0; }).reduce(std::plus<>{});
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/flow/task_span.hpp"
#include "starling/actor/flow/text_chain.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/flow/broadcast.hpp"
#include "starling/engine/flow/chain/sources.hpp"
#include "starling/engine/flow/plan/progress.hpp"
#include "starling/engine/flow/set.hpp"

namespace starling::flow {

class SkippedFiles;
class SpillFolder;

struct MapReduceOptions {
  /// The threads that compute parts, from 1 to 32.
  std::size_t threads = 4;
  /// The number of parts of a container, a generator or a shuffle if the caller gives no number;
  /// see also `split_bytes`. From 1 to 1,000,000.
  Part parts = 16;
  /// Bytes that the records of shuffles and caches may take before they spill; at least 1 MiB. The
  /// results of actions, and the values of one key in group_by_key() and joins, are not counted.
  /// Sums of floating-point numbers may differ in their last digits between different limits.
  std::size_t memory_bytes = std::size_t{1} << 30U;
  /// The folder for spilled data; empty for the system's folder for temporary files.
  std::string spill_folder = {};
  /// The most bytes of spilled data at a time.
  std::uint64_t spill_bytes_max = std::uint64_t{64} << 30U;
  /// The bytes of a text file in one part. 0 stands for the size at which all files that are not
  /// gzip have about twice `parts` parts together, but at least 8 MiB and at most 32 MiB.
  std::uint64_t split_bytes = 0;
  /// True if text() leaves out files that cannot be opened, which skipped_files() lists; false if
  /// such a file is an error. A file that cannot be read to its end is an error in any case.
  bool skip_unreadable = false;
  /// A job ends with an error if a part has failed this many times. Above 0.
  std::uint32_t attempts = 2;
  /// Called when a task begins or succeeds, with the progress of its stage. Any thread may call it,
  /// but a job makes one call at a time, and its other threads may wait meanwhile. So the function
  /// must return soon. If it throws, the job ends with an error.
  std::function<void(const StageProgress&)> on_progress = {};
  /// Called when a task has ended. Several threads may call it at once. If it throws, the job ends
  /// with an error.
  std::function<void(const TaskSpan&)> on_task = {};
  /// Called now and then by each task, if set; several threads may call it at once. Once it returns
  /// true, the job ends with an error.
  std::function<bool()> is_stopped = {};
};

/// Returns the options, with the system's folder for temporary files as `spill_folder` if that is
/// empty. An Error names an option that cannot work.
[[nodiscard]] Result<MapReduceOptions> complete(MapReduceOptions options);

/// A set keeps alive what it needs of its engine, so it may outlive the engine. Thread-safe, except
/// for moving.
class MapReduce {
 public:
  /// An Error names an option that cannot work.
  static Result<MapReduce> make(MapReduceOptions options);
  /// Returns an engine whose jobs `runner` runs. Uses only `parts`, `split_bytes` and
  /// `skip_unreadable` of the options. `spill_folder` is the one to which `runner` spills;
  /// spilled_bytes() reads its count.
  /// Requires: complete() has returned `options`.
  static MapReduce over(MapReduceOptions options, std::shared_ptr<Runner> runner,
                        std::shared_ptr<SpillFolder> spill_folder);

  /// The values of a container, in its order.
  template <class T>
  [[nodiscard]] auto collection(std::vector<T> values) const {
    using C = CollectionChain<T>;
    return Set<T, C>{runner_, C{std::move(values), options_.parts}};
  }
  /// The records f(0), f(1), ... f(count - 1). Plans and errors call the source `name`. `data_hash`
  /// is a hash of the records, or 0 if it is not known: checkpoint() refuses a folder that was
  /// written with another hash.
  template <class F>
  [[nodiscard]] auto generate(std::uint64_t count, F f, std::string name = "generator",
                              std::uint64_t data_hash = 0) const {
    static_assert(std::invocable<const F&, std::uint64_t>,
                  "the function of generate() takes the index of a record (std::uint64_t)");
    using C = GeneratorChain<F>;
    return Set<typename C::Value, C>{
        runner_, C{count, std::move(f), options_.parts, std::move(name), data_hash}};
  }
  /// The lines of text files, in the order of the paths, without their LF or CR LF. A file is split
  /// into parts, unless it is gzip. If the files have headers, the first line of each is left out.
  /// An Error names a file that cannot be opened. With skip_unreadable there is an Error only if no
  /// file can be opened.
  [[nodiscard]] Result<Set<std::string, TextChain>> text(const std::vector<std::string>& paths,
                                                         bool have_headers = false) const;
  /// Returns a handle by which all tasks read `value`.
  template <class T>
  [[nodiscard]] Broadcast<T> broadcast(T value) const {
    return Broadcast<T>{std::move(value)};
  }

  [[nodiscard]] const MapReduceOptions& options() const { return options_; }
  /// An error message for each file that text() has skipped. It names the file and the reason.
  [[nodiscard]] std::vector<Error> skipped_files() const;
  /// The bytes that all jobs together have spilled so far.
  [[nodiscard]] std::uint64_t spilled_bytes() const;

 private:
  MapReduce(MapReduceOptions options, std::shared_ptr<SpillFolder> spill_folder,
            std::shared_ptr<Runner> runner);

  MapReduceOptions options_;
  std::shared_ptr<SpillFolder> spill_folder_;
  std::shared_ptr<Runner> runner_;
  std::shared_ptr<SkippedFiles> skipped_;
};

}  // namespace starling::flow
