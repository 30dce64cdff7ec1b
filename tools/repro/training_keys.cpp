#include "starling/tools/repro/training_keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/job/job.hpp"

namespace starling::program {
namespace {

/// A key of a job that means here what it means there, where its default or help may differ.
struct JobKey {
  std::string_view name;
  /// Empty: the job's own default, or its own help.
  std::string_view value{};
  std::string_view help{};
};
constexpr std::array<JobKey, 18> job_part{{
    {"data", "", "what is trained on, as for `train`; the paper's: idx:IMAGES,LABELS of MNIST"},
    {"test"},
    {"split"},
    {"holdout"},
    {"seed", "", "decides all that is random, but for what time does: the first of the seeds [1]"},
    {"model", "psp-cnn", "what is learned [psp-cnn, the paper's net]"},
    {"dtype"},
    {"optimizer", "sgd:lr=0.3", "as for `train` [sgd:lr=0.3]"},
    {"l2"},
    {"clip"},
    {"schedule"},
    {"batch", "16", "samples of one step of one worker [16]"},
    {"seconds", "30", "wall time of each run, in seconds or with its unit [30]"},
    {"workers", "6", "how many compute updates [6]"},
    {"delay", "exp:500ms", "extra time of each step [exp:500ms]"},
    {"straggler"},
    {"threads"},
    {"quiet"},
}};

/// The barriers of the published run.
constexpr std::array<const char*, 5> published{"bsp", "ssp:s=4", "pbsp:beta=2", "pssp:s=4,beta=2",
                                               "asp"};

bool is_jobs(std::string_view key) {
  return std::ranges::find(job_part, key, &JobKey::name) != job_part.end();
}

std::vector<KeyForm> own_keys() {
  const std::string runs = "Runs";
  const std::string out = "What comes out";
  return {
      {"barrier", KeyKind::texts, "BARRIER",
       "repeatable [bsp, ssp:s=4, pbsp:beta=2, pssp:s=4,beta=2, asp]", runs},
      {"seeds", KeyKind::count, "N", "runs of each barrier [5]", runs},
      {"evals", KeyKind::count, "N", "evaluations of a run, at equal instants [30]", runs},
      {"eval-samples", KeyKind::count, "N", "test samples of each, the first [500]", runs},
      {"out", KeyKind::text, "DIR",
       "the report and its data: a folder, new, empty, or of an earlier report [psp-train]", out},
      {"markdown", KeyKind::text, "DIR", "also as a page of Markdown, with its pictures", out}};
}

/// Returns the settings of the job, defaults filled in, but for the barrier.
Settings job_settings(const Settings& settings) {
  Settings defaults{{"mode", "central", "--mode"}, {"eval-every", "1", "--eval-every"}};
  for (const JobKey& key : job_part)
    if (!key.value.empty())
      defaults.push_back(
          {std::string{key.name}, std::string{key.value}, "--" + std::string{key.name}});
  Settings given;
  for (const Setting& setting : settings)
    if (is_jobs(setting.key)) given.push_back(setting);
  return overridden(std::move(defaults), given);
}

std::vector<Setting> barrier_settings(const Settings& settings) {
  std::vector<Setting> all;
  for (const Setting& setting : settings)
    if (setting.key == "barrier") all.push_back(setting);
  if (all.empty())
    for (const char* text : published) all.push_back({"barrier", text, "--barrier"});
  return all;
}

Result<void> put_counts(TrainingOptions& options, const Settings& settings) {
  constexpr std::uint64_t evals_min = 10;  // so that their last fifth has a spread
  for (auto [key, into, least, most] :
       {std::tuple{"seeds", &options.seeds, std::uint64_t{1}, std::uint64_t{1000}},
        std::tuple{"seed", &options.seed, std::uint64_t{0}, UINT64_MAX},
        std::tuple{"evals", &options.evals, evals_min, std::uint64_t{1000}},
        std::tuple{"eval-samples", &options.samples, std::uint64_t{1}, std::uint64_t{UINT32_MAX}}})
    if (auto put = put_count(*into, settings, key, least, most); !put) return put;
  if (options.seeds > UINT64_MAX - options.seed)
    return Error{"--seeds: " + std::to_string(options.seeds) + " seeds from " +
                 std::to_string(options.seed) + " on: there are not so many"};
  return {};
}

}  // namespace

const std::vector<KeyForm>& training_keys() {
  static const std::vector<KeyForm> all = [] {
    std::vector<KeyForm> keys;
    for (const JobKey& part : job_part) {
      KeyForm key = *find_key(part.name);
      if (!part.help.empty()) key.help = part.help;
      if (key.name == "seconds") key.group = "Runs";
      keys.push_back(std::move(key));
    }
    for (KeyForm& key : own_keys()) keys.push_back(std::move(key));
    return keys;
  }();
  return all;
}

std::string training_footer() {
  return "\nEvery barrier trains for the same wall time under every seed, one run after the other "
         "in turn, in\ncentral mode. Let the delay be much longer than what 6 steps take to "
         "compute, or the processors\nand not the barriers decide. Models are evaluated between "
         "the runs; a run keeps as many of them in\nmemory as it has evaluations. Figures are of "
         "this machine and this hour.\nExit codes: 0 done, whatever the verdicts; 1 a run failed, "
         "or nothing could be written; 2 bad\ninput, 130 interrupted, then nothing was written.";
}

Result<TrainingOptions> make_training(const Settings& settings, const Registry& registry) {
  if (place_of(settings, "data").empty())
    return Error{
        "--data: is missing; valid: idx:IMAGES,LABELS of MNIST, as published, or digits:n=10000, "
        "generated pictures"};
  TrainingOptions options;
  if (auto put = put_counts(options, settings); !put) return std::move(put).error();
  if (const auto out = text_of(settings, "out"); !out.empty()) options.out = out;
  options.markdown = text_of(settings, "markdown");
  options.quiet = !text_of(settings, "quiet").empty();
  const Settings job = job_settings(settings);
  for (const Setting& barrier : barrier_settings(settings)) {
    Settings whole = job;
    whole.push_back(barrier);
    const auto made = make_job(whole, registry);
    if (!made) return made.error();
    if (std::ranges::find(options.barriers, made->train.job.barrier) != options.barriers.end())
      return Error{barrier.place + ": '" + barrier.text + "' is given twice"};
    options.barriers.push_back(made->train.job.barrier);
    if (options.job.empty()) options.job = std::move(whole);
  }
  return options;
}

std::string print(const TrainingOptions& options) {
  std::string text;
  const auto add = [&](const std::string& key, const std::string& value) {
    text += (text.empty() ? "--" : " --") + key + " " + value;
  };
  for (const Setting& setting : options.job)
    if (is_jobs(setting.key) && setting.key != "quiet" && setting.key != "seed")
      add(setting.key, setting.text);
  for (const auto& barrier : options.barriers) add("barrier", barrier::print(barrier));
  add("seed", std::to_string(options.seed));
  add("seeds", std::to_string(options.seeds));
  add("evals", std::to_string(options.evals));
  add("eval-samples", std::to_string(options.samples));
  return text;
}

}  // namespace starling::program
