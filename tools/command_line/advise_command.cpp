#include "starling/tools/command_line/advise_command.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/advise/advice.hpp"
#include "starling/tools/cluster/step_recorder.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/sim/run_display.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

Result<void> put_barriers(AdviseOptions& options, const Registry& registry,
                          const Settings& settings) {
  for (const Setting& setting : settings) {
    if (setting.key != "barrier") continue;
    auto barrier = barrier::parse(setting.text, registry.rules());
    if (!barrier) return std::move(barrier).error().within(setting.location);
    if (barrier::hands_in_early(*barrier))
      return Error{setting.location + ": barrier " + barrier::print(*barrier) +
                   ": hands in some of a step's samples, and advise simulates steps without "
                   "samples; valid: other barriers"};
    if (barrier::moves_with_descent(*barrier))
      return Error{setting.location + ": barrier " + barrier::print(*barrier) +
                   ": follows the loss at one learning rate, and advise simulates two at once; "
                   "valid: other barriers"};
    if (std::ranges::find(options.barriers, *barrier) != options.barriers.end())
      return Error{setting.location + ": '" + setting.text + "' is given twice; valid: each once"};
    options.barriers.push_back(*std::move(barrier));
  }
  if (options.barriers.size() == 1)
    return Error{"--barrier: " + barrier::print(options.barriers.front()) +
                 " alone has no other to be compared with; valid: two or more, or none for all"};
  return {};
}

Result<AdviseOptions> parse_options(const Registry& registry, const std::string& file,
                                    const Settings& settings) {
  AdviseOptions options{.file = file};
  if (auto put = put_barriers(options, registry, settings); !put) return std::move(put).error();
  if (const auto mode = text_of(settings, "mode"); !mode.empty()) {
    const auto parsed = core::parse_mode(mode);
    if (!parsed) return Error{"--mode: " + parsed.error().message};
    options.mode = *parsed;
  }
  std::uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
  for (auto [option, into, least, most] :
       {std::tuple{"steps", &options.steps, std::uint64_t{100}, std::uint64_t{10'000}},
        std::tuple{"seeds", &options.seeds, std::uint64_t{1}, std::uint64_t{1000}},
        std::tuple{"seed", &options.seed, std::uint64_t{0}, UINT64_MAX},
        std::tuple{"threads", &threads, std::uint64_t{1}, std::uint64_t{4096}}})
    if (auto put = put_count(*into, settings, option, least, most); !put)
      return std::move(put).error();
  options.threads = threads;
  if (options.seeds - 1 > UINT64_MAX - options.seed)
    return Error{"--seeds: " + std::to_string(options.seeds) + " seeds from " +
                 std::to_string(options.seed) + " on exceed the largest seed, " +
                 std::to_string(UINT64_MAX)};
  return options;
}

/// Returns an Error if the user gave two sources of step times or none, or gave a file and an
/// option that only recording has.
Result<void> check_source(const std::string& file, const Settings& settings) {
  const bool has_node = !location_of(settings, "from").empty();
  if (file.empty() && !has_node)
    return Error{"the step times are missing; valid: " + program_name() +
                 " advise FILE, or --from HOST:PORT to record those of a job"};
  if (!file.empty() && has_node)
    return Error{"--from: both it and the file " + quote(file) +
                 " are given; valid: one source of step times"};
  if (has_node) return {};
  for (const KeyDescription& key : recording_options(""))
    if (!location_of(settings, key.name).empty())
      return Error{"--" + key.name + ": is of no use for a file; valid: with --from"};
  return {};
}

}  // namespace

Result<int> advise_command(const Registry& registry, const std::string& file,
                           const Settings& settings) {
  if (auto valid = check_source(file, settings); !valid) return std::move(valid).error();
  auto options = parse_options(registry, file, settings);
  if (!options) return std::move(options).error();
  Result<StepTrace> trace = StepTrace{};
  if (file.empty()) {
    auto recorded = record_steps(settings);
    if (!recorded) return std::move(recorded).error();
    if (!*recorded) return job_failed;
    options->file = "job " + (*recorded)->job;
    trace = std::move((*recorded)->trace);
  } else {
    trace = read_step_trace(file);
  }
  if (!trace) return std::move(trace).error();
  RunDisplay display{!text_of(settings, "quiet").empty(), "simulating"};
  const auto advice = make_advice(*options, std::make_shared<const StepTrace>(*std::move(trace)),
                                  [&](double share) { display.show(share); });
  if (!advice) return add_location(advice.error(), settings);
  const bool is_json = !text_of(settings, "json").empty();
  return write_stdout(is_json ? advice_json(*advice) + "\n" : advice_text(*advice), done);
}

}  // namespace starling::program
