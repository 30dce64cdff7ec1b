#include "starling/actor/flow/map_reduce.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "starling/actor/flow/spill_folder.hpp"
#include "starling/actor/flow/thread_runner.hpp"
#include "starling/base/text.hpp"

namespace starling::flow {

/// The errors of the files that text() has skipped. Thread-safe.
class SkippedFiles {
 public:
  /// Adds errors that are not in the list yet.
  void add(const std::vector<Error>& errors) {
    const std::scoped_lock lock{mutex_};
    for (const Error& error : errors)
      if (std::ranges::find(errors_, error.message, &Error::message) == errors_.end())
        errors_.push_back(error);
  }
  [[nodiscard]] std::vector<Error> list() const {
    const std::scoped_lock lock{mutex_};
    return errors_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Error> errors_;
};

namespace {

constexpr std::size_t threads_max = 32;
constexpr std::size_t memory_min = std::size_t{1} << 20U;
constexpr std::uint32_t parts_max = 1'000'000;

Result<void> check_range(const char* name, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return Error{std::string{name} + ": " + std::to_string(value) +
               " is out of range; valid: " + std::to_string(least) +
               (most == UINT64_MAX ? " or more" : " to " + std::to_string(most))};
}

Result<void> check(const MapReduceOptions& options) {
  if (auto r = check_range("threads", options.threads, 1, threads_max); !r) return r;
  if (auto r = check_range("parts", options.parts, 1, parts_max); !r) return r;
  if (auto r = check_range("memory_bytes", options.memory_bytes, memory_min, UINT64_MAX); !r)
    return r;
  if (auto r = check_range("attempts", options.attempts, 1, UINT32_MAX); !r) return r;
  std::error_code fault;
  if (!std::filesystem::is_directory(options.spill_folder, fault))
    return Error{"spill_folder: " + quote(options.spill_folder) +
                 " is not a folder; valid: a folder that exists"};
  return {};
}

/// Returns how many bytes of a text file one part takes. A combiner adds up more records in a large
/// part, so parts of large files are larger, up to a limit. The result is the same on all nodes
/// that have the same files.
std::uint64_t split_bytes_for(const std::vector<TextFileInfo>& files,
                              const MapReduceOptions& options) {
  constexpr std::uint64_t split_bytes_min = std::uint64_t{8} << 20U;
  constexpr std::uint64_t split_bytes_max = std::uint64_t{32} << 20U;
  if (options.split_bytes > 0) return options.split_bytes;
  std::uint64_t bytes = 0;
  for (const TextFileInfo& file : files)
    if (!file.is_gzip) bytes += file.bytes;
  const std::uint64_t splits = 2 * std::uint64_t{options.parts};
  return std::clamp((bytes + splits - 1) / splits, split_bytes_min, split_bytes_max);
}

}  // namespace

Result<MapReduceOptions> complete(MapReduceOptions options) {
  if (options.spill_folder.empty()) {
    std::error_code fault;
    options.spill_folder = std::filesystem::temp_directory_path(fault).string();
    if (fault)
      return Error{
          "spill_folder: none is given, and the system's folder for temporary files, TMPDIR or "
          "/tmp, is not a folder; valid: a folder that exists"};
  }
  if (auto valid = check(options); !valid) return std::move(valid).error();
  return options;
}

MapReduce::MapReduce(MapReduceOptions options, std::shared_ptr<SpillFolder> spill_folder,
                     std::shared_ptr<Runner> runner)
    : options_(std::move(options)),
      spill_folder_(std::move(spill_folder)),
      runner_(std::move(runner)),
      skipped_(std::make_shared<SkippedFiles>()) {}

MapReduce MapReduce::over(MapReduceOptions options, std::shared_ptr<Runner> runner,
                          std::shared_ptr<SpillFolder> spill_folder) {
  return MapReduce{std::move(options), std::move(spill_folder), std::move(runner)};
}

Result<MapReduce> MapReduce::make(MapReduceOptions given) {
  auto completed = complete(std::move(given));
  if (!completed) return std::move(completed).error();
  MapReduceOptions options = *std::move(completed);
  auto spill_folder = std::make_shared<SpillFolder>(options.spill_folder, options.memory_bytes,
                                                    options.spill_bytes_max);
  auto runner =
      std::make_shared<ThreadRunner>(ThreadRunnerOptions{.threads = options.threads,
                                                         .default_parts = options.parts,
                                                         .attempts_max = options.attempts,
                                                         .on_progress = options.on_progress,
                                                         .on_task = options.on_task,
                                                         .is_stopped = options.is_stopped},
                                     spill_folder);
  return MapReduce{std::move(options), std::move(spill_folder), std::move(runner)};
}

Result<Set<std::string, TextChain>> MapReduce::text(const std::vector<std::string>& paths,
                                                    bool have_headers) const {
  std::vector<Error> skipped;
  const auto files = find_text_files(paths, options_.skip_unreadable ? &skipped : nullptr);
  if (!files) return files.error();
  skipped_->add(skipped);
  return Set<std::string, TextChain>{
      runner_, TextChain{split_files(*files, split_bytes_for(*files, options_), have_headers)}};
}

std::vector<Error> MapReduce::skipped_files() const { return skipped_->list(); }

std::uint64_t MapReduce::spilled_bytes() const { return spill_folder_->spilled(); }

}  // namespace starling::flow
