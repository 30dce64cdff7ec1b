#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/chaos/chaos_report.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

using sim::ChaosReport;

/// The seeds from `first` to `last`, both included.
struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  [[nodiscard]] std::uint64_t count() const { return last - first + 1; }
};

/// Parses `A..B` or a single seed.
Result<SeedRange> parse_seeds(const std::string& text) {
  constexpr std::uint64_t count_max = std::uint64_t{1} << 40U;
  const auto refuse = [&](const std::string& why) {
    return Error{"--seeds: " + quote(text) + " " + why};
  };
  const auto dots = text.find("..");
  const auto first = parse_count(text.substr(0, dots));
  const auto last =
      dots == std::string::npos ? parse_count(text) : parse_count(text.substr(dots + 2));
  if (!first || !last) return refuse("is not a range of seeds; valid: 1..1000, or one seed");
  if (*last < *first)
    return refuse("ends before it begins; valid: " + std::to_string(*last) + ".." +
                  std::to_string(*first));
  if (*last - *first >= count_max)
    return refuse("are too many; valid: at most " + std::to_string(count_max));
  return SeedRange{*first, *last};
}

using Clock = std::chrono::steady_clock;

/// Runs the seeds on several threads, in ascending order. Ends when all seeds have run, when a seed
/// has failed and all lower ones have run, or after an interrupt.
class Campaign {
 public:
  Campaign(SeedRange seeds, std::size_t threads)
      : seeds_(seeds), threads_(threads), next_(seeds.first) {}

  void run() {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < threads_; ++i) threads.emplace_back([this] { run_seeds(); });
    Display display{false};
    while (running_threads_.load() > 0 || started_threads_.load() < threads_) {
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      if (seconds_since(started_at_) >= 1) display.show(progress());
    }
  }

  [[nodiscard]] ChaosTotals totals() const {
    ChaosTotals totals = totals_;
    totals.seeds_requested = seeds_.count();
    totals.interrupted = is_interrupted() && totals.runs < totals.seeds_requested;
    totals.wall_s = seconds_since(started_at_);
    return totals;
  }
  /// Returns the lowest seed that failed, with its report; nothing if none failed.
  [[nodiscard]] const std::optional<std::pair<std::uint64_t, ChaosReport>>& failed() const {
    return failed_;
  }

 private:
  /// Runs seeds on this thread.
  void run_seeds() {
    ++running_threads_;
    ++started_threads_;
    while (!is_interrupted()) {
      const std::uint64_t seed = next_.fetch_add(1);
      if (seed > seeds_.last || seed < seeds_.first || seed > lowest_failed_.load()) break;
      const ChaosReport report = sim::run_chaos(sim::draw_scenario(seed));
      const std::scoped_lock lock{mutex_};
      totals_.add(report);
      if (report.violation.empty() || (failed_ && failed_->first < seed)) continue;
      failed_ = {seed, report};
      lowest_failed_ = seed;
    }
    --running_threads_;
  }

  /// Returns the progress line.
  std::string progress() {
    const std::scoped_lock lock{mutex_};
    return fmt::format(
        "{} of {} ({:.0f} %), {}", totals_.runs, print_count(seeds_.count(), "seed"),
        100 * static_cast<double>(totals_.runs) / static_cast<double>(seeds_.count()),
        print_count(totals_.sum.events, "event"));
  }

  const Clock::time_point started_at_ = Clock::now();
  SeedRange seeds_;
  std::size_t threads_;
  /// The next seed to run.
  std::atomic<std::uint64_t> next_;
  std::atomic<std::uint64_t> lowest_failed_{UINT64_MAX};
  std::atomic<std::size_t> running_threads_{0};
  std::atomic<std::size_t> started_threads_{0};
  /// Guards the members below.
  std::mutex mutex_;
  ChaosTotals totals_;
  std::optional<std::pair<std::uint64_t, ChaosReport>> failed_;
};

Result<int> report(const ChaosOptions& options, const ChaosTotals& totals,
                   const std::optional<ChaosFailure>& failure) {
  const int code = totals.interrupted ? interrupted_code : failure ? job_failed : done;
  return write_stdout(
      options.json ? chaos_json(totals, failure) + "\n" : chaos_text(totals, failure), code);
}

/// Runs the scenario in the file `options.replay`.
Result<int> replay(const ChaosOptions& options) {
  const auto content = read_small_file(options.replay, "a scenario as chaos writes it");
  if (!content) return Error{"--replay: " + content.error().message};
  const auto scenario = sim::parse_scenario(*content);
  if (!scenario) return Error{"--replay: " + options.replay + ": " + scenario.error().message};
  const auto started_at = Clock::now();
  const ChaosReport run = sim::run_chaos(*scenario);
  ChaosTotals totals;
  totals.add(run);
  totals.wall_s = seconds_since(started_at);
  std::optional<ChaosFailure> failure;
  if (!run.violation.empty())
    failure = ChaosFailure{scenario->seed, *scenario, run, false, options.replay};
  return report(options, totals, failure);
}

/// Shrinks the scenario of a failed seed, and writes it to a file that --replay reads. `out` is the
/// name of the file; empty for the default.
ChaosFailure shrink_failure(std::uint64_t seed, const std::string& out) {
  ChaosFailure failure{.seed = seed,
                       .scenario = sim::shrink(sim::draw_scenario(seed)),
                       .is_shrunk = true,
                       .file = out.empty() ? fmt::format("chaos-{}.txt", seed) : out};
  failure.report = sim::run_chaos(failure.scenario);
  const std::string head = fmt::format("# {}\n# {}\n", failure.report.violation, build_text());
  if (auto written = replace_file(failure.file, head + print(failure.scenario)); !written) {
    print_error(written.error().message);
    failure.file.clear();
  }
  return failure;
}

}  // namespace

Result<int> chaos_command(const ChaosOptions& options) {
  if (!options.replay.empty()) return replay(options);
  const auto seeds = parse_seeds(options.seeds.empty() ? "1..1000" : options.seeds);
  if (!seeds) return seeds.error();
  if (!options.out.empty())
    if (auto valid = check_writable(options.out); !valid)
      return std::move(valid).error().within("--out");
  const GracefulStop graceful{stop_message};
  Campaign campaign{*seeds, options.threads > 0
                                ? options.threads
                                : std::max<std::size_t>(1, std::thread::hardware_concurrency())};
  campaign.run();
  const ChaosTotals totals = campaign.totals();
  std::optional<ChaosFailure> failure;
  if (campaign.failed()) failure = shrink_failure(campaign.failed()->first, options.out);
  return report(options, totals, failure);
}

}  // namespace starling::program
