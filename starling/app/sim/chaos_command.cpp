#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "starling/app/commands.hpp"
#include "starling/app/file_output.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/app/program_name.hpp"
#include "starling/app/version.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/sim/chaos.hpp"

namespace starling::app {
namespace {

using sim::ChaosReport;
using sim::Fault;
using sim::Scenario;

/// Both ends are run.
struct Seeds {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  [[nodiscard]] std::uint64_t count() const { return last - first + 1; }
};

Result<Seeds> parse_seeds(const std::string& text) {
  const Error bad{"--seeds: '" + text + "' is no range of seeds; valid: 1..1000, or one seed"};
  const auto dots = text.find("..");
  const auto first = parse_count(text.substr(0, dots));
  const auto last =
      dots == std::string::npos ? parse_count(text) : parse_count(text.substr(dots + 2));
  if (!first || !last) return bad;
  if (*last < *first || *last - *first >= std::uint64_t{1} << 40U)
    return Error{"--seeds: " + text + " holds no seed, or too many; valid: 1..1000"};
  return Seeds{*first, *last};
}

Result<std::size_t> parse_threads(const std::string& text) {
  if (text.empty()) return std::max<std::size_t>(1, std::thread::hardware_concurrency());
  const auto threads = parse_count(text);
  if (!threads || *threads < 1 || *threads > 1024)
    return Error{"--threads: '" + text + "'; valid: 1 to 1024"};
  return *threads;
}

struct Failure {
  std::uint64_t seed = 0;
  /// As it failed, cut down.
  Scenario scenario;
  ChaosReport report;
};

/// What many runs came to.
struct Totals {
  std::uint64_t runs = 0;
  ChaosReport sum;
  std::uint64_t gave_up = 0;

  void add(const ChaosReport& report) {
    ++runs;
    sum.events += report.events;
    sum.packets += report.packets;
    sum.steps += report.steps;
    sum.epochs += report.epochs;
    sum.lives += report.lives;
    sum.excluded += report.excluded;
    sum.passes += report.passes;
    sum.faults_refused += report.faults_refused;
    for (std::size_t i = 0; i < Fault::kinds; ++i) sum.faults[i] += report.faults[i];
    gave_up += report.gave_up ? 1 : 0;
  }
};

/// Runs seeds on some threads until the last, an interrupt, or the lowest that fails is known.
class Campaign {
 public:
  Campaign(Seeds seeds, std::size_t threads)
      : seeds_(seeds), threads_(threads), next_(seeds.first) {}

  void run() {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < threads_; ++i) threads.emplace_back([this] { work(); });
    const bool shows = ::isatty(STDERR_FILENO) == 1;
    while (running_.load() > 0 || started_.load() < threads_) {
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      if (shows) show();
    }
    if (shows) fmt::print(stderr, "\r\033[K");
  }

  [[nodiscard]] const Totals& totals() const { return totals_; }
  [[nodiscard]] const std::optional<std::pair<std::uint64_t, ChaosReport>>& failed() const {
    return failed_;
  }

 private:
  void work() {
    ++running_;
    ++started_;
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
    --running_;
  }

  void show() {
    const std::scoped_lock lock{mutex_};
    fmt::print(stderr, "\r\033[K{} of {} seeds ({:.0f} %), {} events", totals_.runs, seeds_.count(),
               100 * static_cast<double>(totals_.runs) / static_cast<double>(seeds_.count()),
               totals_.sum.events);
    std::fflush(stderr);
  }

  Seeds seeds_;
  std::size_t threads_;
  std::atomic<std::uint64_t> next_;
  std::atomic<std::uint64_t> lowest_failed_{UINT64_MAX};
  std::atomic<std::size_t> running_{0};
  std::atomic<std::size_t> started_{0};
  std::mutex mutex_;
  Totals totals_;
  std::optional<std::pair<std::uint64_t, ChaosReport>> failed_;
};

std::string build_text() { return "starling " + version() + ", commit " + commit(); }

std::string describe(const Failure& failure, const std::string& file) {
  std::string text =
      fmt::format("FAILED: {}\n  seed {}, {}, after {} events at {:.6f} s of virtual time\n",
                  failure.report.violation, failure.seed, build_text(), failure.report.events,
                  std::chrono::duration<double>(failure.report.end).count());
  text += "  the shortest scenario found that fails:\n";
  for (const auto line : split(print(failure.scenario), '\n'))
    if (!line.empty()) text += fmt::format("    {}\n", line);
  if (!file.empty()) text += fmt::format("  again: {} chaos --replay {}\n", program_name(), file);
  return text;
}

std::string describe(const Totals& totals, double wall_s) {
  const ChaosReport& sum = totals.sum;
  std::string text = fmt::format("{} seeds, {} events, {} packets in {:.1f} s\n", totals.runs,
                                 sum.events, sum.packets, wall_s);
  text += fmt::format(
      "  {} steps, {} barriers judged, {} epochs, {} lives ({} declared dead while well)\n",
      sum.steps, sum.passes, sum.epochs, sum.lives, sum.excluded);
  text += "  faults:";
  for (std::size_t i = 0; i < Fault::kinds; ++i)
    text += fmt::format(" {} {}{}", name(static_cast<Fault::Kind>(i)), sum.faults[i],
                        i + 1 < Fault::kinds ? "," : "");
  return text + fmt::format(
                    "; {} left out, to keep to what is promised\n  {} jobs ended with an "
                    "error where more was lost than is promised\n",
                    sum.faults_refused, totals.gave_up);
}

nlohmann::ordered_json as_json(const Totals& totals, double wall_s) {
  const ChaosReport& sum = totals.sum;
  nlohmann::ordered_json json;
  json["version"] = version();
  json["commit"] = commit();
  json["seeds"] = totals.runs;
  json["events"] = sum.events;
  json["packets"] = sum.packets;
  json["steps"] = sum.steps;
  json["passes"] = sum.passes;
  json["epochs"] = sum.epochs;
  json["lives"] = sum.lives;
  json["excluded"] = sum.excluded;
  for (std::size_t i = 0; i < Fault::kinds; ++i)
    json["faults"][std::string{name(static_cast<Fault::Kind>(i))}] = sum.faults[i];
  json["faults_refused"] = sum.faults_refused;
  json["gave_up"] = totals.gave_up;
  json["wall_s"] = wall_s;
  return json;
}

nlohmann::ordered_json as_json(const Failure& failure, const std::string& file) {
  nlohmann::ordered_json json;
  json["seed"] = failure.seed;
  json["violation"] = failure.report.violation;
  json["events"] = failure.report.events;
  json["at_s"] = std::chrono::duration<double>(failure.report.end).count();
  json["scenario"] = print(failure.scenario);
  if (!file.empty()) json["file"] = file;
  return json;
}

Result<int> report(const ChaosOptions& options, const Totals& totals, double wall_s,
                   const std::optional<Failure>& failure, const std::string& file) {
  const int code = is_interrupted() ? interrupted_code : failure ? job_failed : done;
  if (options.json) {
    auto json = as_json(totals, wall_s);
    json["failure"] = failure ? as_json(*failure, file) : nlohmann::ordered_json{};
    return put_out(json.dump(2) + "\n", code);
  }
  std::string text = describe(totals, wall_s);
  text += failure ? describe(*failure, file) : "  nothing lost, nothing doubled, nobody stuck\n";
  return put_out(text, code);
}

Result<int> replay(const ChaosOptions& options) {
  std::ifstream in{options.replay};
  if (!in) return Error{"--replay: " + options.replay + " cannot be read"};
  std::ostringstream content;
  content << in.rdbuf();
  const auto scenario = sim::parse_scenario(content.str());
  if (!scenario) return Error{"--replay: " + options.replay + ": " + scenario.error().message};
  const auto began = std::chrono::steady_clock::now();
  Totals totals;
  const ChaosReport run = sim::run_chaos(*scenario);
  totals.add(run);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::optional<Failure> failure;
  if (!run.violation.empty()) failure = Failure{scenario->seed, *scenario, run};
  return report(options, totals, took.count(), failure, options.replay);
}

}  // namespace

Result<int> chaos_command(const ChaosOptions& options) {
  if (!options.replay.empty() && !options.seeds.empty())
    return Error{"--replay and --seeds exclude each other; valid: one of them"};
  if (!options.replay.empty()) return replay(options);
  const auto seeds = parse_seeds(options.seeds.empty() ? "1..1000" : options.seeds);
  if (!seeds) return seeds.error();
  const auto threads = parse_threads(options.threads);
  if (!threads) return threads.error();
  if (!options.out.empty())
    if (auto valid = check_writable(options.out); !valid)
      return std::move(valid).error().within("--out");
  const OrderlyStop orderly{false};
  const auto began = std::chrono::steady_clock::now();
  Campaign campaign{*seeds, *threads};
  campaign.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::optional<Failure> failure;
  std::string file;
  if (campaign.failed()) {
    failure.emplace();
    failure->seed = campaign.failed()->first;
    failure->scenario = sim::shrink(sim::draw_scenario(failure->seed));
    failure->report = sim::run_chaos(failure->scenario);
    file = options.out.empty() ? fmt::format("chaos-{}.txt", failure->seed) : options.out;
    const std::string head = fmt::format("# {}\n# {}\n", failure->report.violation, build_text());
    if (auto written = replace_file(file, head + print(failure->scenario)); !written) {
      complain(written.error().message);
      file.clear();
    }
  }
  return report(options, campaign.totals(), took.count(), failure, file);
}

}  // namespace starling::app
