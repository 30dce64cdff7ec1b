#include "starling/tools/repro/repro_arguments.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/tools/repro/live_commands.hpp"
#include "starling/tools/repro/training_keys.hpp"

namespace starling::program {
namespace {

/// The default of `exchanges --seeds`. Fewer than for other reports, because jobs learn live.
constexpr int exchanges_seeds = 3;

/// Returns the keys of a report that is one HTML file, which is called `name`.html by default.
/// `quick` says what the key of that name leaves out.
std::vector<KeyDescription> report_keys(const std::string& name, const std::string& quick,
                                        int seeds = 20) {
  return {{"out", ValueType::text, "FILE.html", "the report, one HTML file [" + name + ".html]",
           "Options"},
          {"data", ValueType::text, "DIR",
           "the report's data and plots [a folder beside the report, named after it: " + name +
               "-data]",
           "Options"},
          {"markdown", ValueType::text, "DIR",
           "write the report as a page of Markdown too, with its pictures", "Options"},
          {"seeds", ValueType::count, "N", "runs of each setting [" + std::to_string(seeds) + "]",
           "Options"},
          {"seed", ValueType::count, "N", "the first of the seeds [1]", "Options"},
          {"threads", ValueType::count, "N", "runs at the same time [one for each processor]",
           "Options"},
          {"quick", ValueType::flag, "", quick, "Options"},
          {"quiet", ValueType::flag, "", "show no progress", "Options"}};
}

const std::vector<KeyDescription>& psp_keys() {
  static const std::vector<KeyDescription> keys =
      report_keys("psp", "2 seeds and fewer settings, to see that everything works");
  return keys;
}

const std::vector<KeyDescription>& barriers_keys() {
  static const std::vector<KeyDescription> keys = [] {
    auto all = report_keys(
        "barriers", "2 seeds, fewer clusters and live runs of 1 s, to see that everything works");
    all.push_back({"live", ValueType::duration, "T",
                   "wall time of each of the 18 live runs, 1s to 10min [8s]", "Options"});
    return all;
  }();
  return keys;
}

const std::vector<KeyDescription>& exchanges_keys() {
  static const std::vector<KeyDescription> keys = [] {
    auto all = report_keys("exchanges",
                           "2 seeds, fewer workers and short jobs, to see that everything works",
                           exchanges_seeds);
    std::erase_if(all, [](const KeyDescription& key) { return key.name == "threads"; });
    all.push_back(
        {"live", ValueType::duration, "T",
         "wall time of each of the 2 live runs of allreduce, with and without overlap, 1s "
         "to 10min [8s]",
         "Options"});
    return all;
  }();
  return keys;
}

/// Returns the options of a report from its settings.
Result<ReproOptions> report_options(const Settings& settings, const std::string& out,
                                    std::uint64_t seeds = ReproOptions{}.seeds) {
  ReproOptions options;
  options.seeds = seeds;
  options.out = out;
  if (const auto given = text_of(settings, "out"); !given.empty()) options.out = given;
  options.data = text_of(settings, "data");
  options.markdown = text_of(settings, "markdown");
  options.quick = !text_of(settings, "quick").empty();
  options.quiet = !text_of(settings, "quiet").empty();
  if (options.quick) options.seeds = 2;
  if (auto put = put_count(options.seeds, settings, "seeds", 1, 100'000); !put)
    return std::move(put).error();
  if (auto put = put_count(options.seed, settings, "seed", 0, UINT64_MAX); !put)
    return std::move(put).error();
  if (auto put = put_count(options.threads, settings, "threads", 1, 4096); !put)
    return std::move(put).error();
  return options;
}

/// Stores the time of a live run.
Result<void> put_live(LiveReproOptions& options, const Settings& settings) {
  const std::string text = text_of(settings, "live");
  if (text.empty()) return {};
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  if (!time || *time < std::chrono::seconds{1} || *time > std::chrono::minutes{10})
    return Error{location_of(settings, "live") + ": " + quote(text) +
                 " must be seconds, or a time like 8s, from 1s to 10min"};
  options.live = *time;
  return {};
}

/// Returns the options of a report with live runs from its settings.
Result<LiveReproOptions> live_options(const Settings& settings, const std::string& out,
                                      std::uint64_t seeds) {
  auto report = report_options(settings, out, seeds);
  if (!report) return std::move(report).error();
  LiveReproOptions options{.report = *std::move(report)};
  if (options.report.quick) options.live = std::chrono::seconds{1};
  if (auto put = put_live(options, settings); !put) return std::move(put).error();
  if (options.report.seeds - 1 > UINT64_MAX - options.report.seed)
    return Error{"--seeds: " + std::to_string(options.report.seeds) + " seeds from " +
                 std::to_string(options.report.seed) + " on exceed the largest seed, " +
                 std::to_string(UINT64_MAX)};
  return options;
}

}  // namespace

std::string flags_of(const LiveReproOptions& options) {
  return fmt::format("--seed {} --seeds {} --live {}{}", options.report.seed, options.report.seeds,
                     print_duration(options.live), options.report.quick ? " --quick" : "");
}

ReproArguments::ReproArguments(CLI::App& program)
    : repro_(program, "repro", "reproduce a paper's experiments as a report"),
      psp_(repro_.app(), "psp", "Probabilistic Synchronous Parallel: what the paper simulated",
           psp_keys()),
      psp_train_(repro_.app(), "psp-train",
                 "Probabilistic Synchronous Parallel: the paper's training run, live",
                 training_keys()),
      barriers_(repro_.app(), "barriers",
                "barriers of the literature: published, simulated and live", barriers_keys()),
      exchanges_(repro_.app(), "exchanges",
                 "exchanges of the literature: published, simulated and live", exchanges_keys()) {
  repro_.allow_one_subcommand();
  psp_train_.command().set_footer(training_footer());
  barriers_.command().set_footer(
      "\nRuns bsp, ssp, dssp, ebsp, fluent, quorum and pssp live with four workers, one of them at "
      "half\nspeed, simulates them with the same delays and on three small clusters, and maps "
      "which barrier\nwins on which cluster. Takes some minutes. Live runs need an idle machine.\n"
      "Exit codes: 0 done, whether or not claims are reproduced; 1 a run failed, or nothing could "
      "be\nwritten; 2 bad input; 130 interrupted, then nothing was written.");
  exchanges_.command().set_footer(
      "\nComputes what collectives cost, simulates gossip, averages and rounds that overlap with "
      "steps\nmessage by message, and trains a perceptron live under every exchange. Takes "
      "about a minute.\n"
      "Exit codes: as for barriers.");
}

Result<int> ReproArguments::run(const Registry& registry) const {
  if (!repro_.has_chosen_subcommand())
    return repro_.missing_command_error("what to reproduce is missing",
                                        ", as in " + repro_.call() + " psp",
                                        "'{}' is no report that can be reproduced");
  for (const Command* command : {&repro_, &psp_.command(), &psp_train_.command(),
                                 &barriers_.command(), &exchanges_.command()})
    if (command->is_chosen())
      if (auto known = command->refuse_extras(); !known) return std::move(known).error();
  if (psp_.command().is_chosen()) return run_psp();
  if (barriers_.command().is_chosen()) return run_barriers(registry);
  if (exchanges_.command().is_chosen()) return run_exchanges(registry);
  const auto settings = psp_train_.settings();
  return settings ? repro_psp_train_command(registry, *settings) : Result<int>{settings.error()};
}

Result<int> ReproArguments::run_psp() const {
  const auto settings = psp_.settings();
  if (!settings) return settings.error();
  const auto options = report_options(*settings, "psp.html");
  return options ? repro_psp_command(*options) : Result<int>{options.error()};
}

Result<int> ReproArguments::run_barriers(const Registry& registry) const {
  const auto settings = barriers_.settings();
  if (!settings) return settings.error();
  const auto options = live_options(*settings, "barriers.html", ReproOptions{}.seeds);
  return options ? repro_barriers_command(registry, *options) : Result<int>{options.error()};
}

Result<int> ReproArguments::run_exchanges(const Registry& registry) const {
  const auto settings = exchanges_.settings();
  if (!settings) return settings.error();
  const auto options = live_options(*settings, "exchanges.html", exchanges_seeds);
  return options ? repro_exchanges_command(registry, *options) : Result<int>{options.error()};
}

}  // namespace starling::program
