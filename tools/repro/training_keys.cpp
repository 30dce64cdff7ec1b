#include "starling/tools/repro/training_keys.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/program/shell_word.hpp"

namespace starling::program {
namespace {

/// An option that this command has in common with training jobs.
struct JobOption {
  std::string_view name;
  /// The default and the help in this command; each is empty if it is the same as in training jobs.
  std::string_view default_value{};
  std::string_view help{};
};
constexpr std::array<JobOption, 18> job_options{{
    {"data", "", "the training data, as for `train`; the paper's: idx:IMAGES,LABELS of MNIST"},
    {"test"},
    {"split"},
    {"holdout"},
    {"seed", "",
     "the first of the seeds; they decide all random draws, but not what depends on timing [1]"},
    {"model", "psp-cnn", "the model [psp-cnn, the paper's net]"},
    {"dtype"},
    {"optimizer", "sgd:lr=0.3", "as for `train` [sgd:lr=0.3]"},
    {"l2"},
    {"clip"},
    {"schedule"},
    {"batch", "16", "samples of one step of one worker [16]"},
    {"seconds", "30", "wall time of each run, in seconds or with its unit [30]"},
    {"workers", "6", "the number of workers [6]"},
    {"delay", "exp:500ms", "extra time of each step [exp:500ms]"},
    {"straggler"},
    {"threads"},
    {"quiet"},
}};

/// The barriers of the published run.
constexpr std::array<const char*, 5> published_barriers{"bsp", "ssp:s=4", "pbsp:beta=2",
                                                        "pssp:s=4,beta=2", "asp"};

bool is_job_option(std::string_view name) {
  return std::ranges::find(job_options, name, &JobOption::name) != job_options.end();
}

std::vector<KeyDescription> own_keys() {
  const std::string runs = "Runs";
  const std::string out = "What comes out";
  return {
      {"barrier", ValueType::texts, "BARRIER",
       "a barrier to compare; repeatable [bsp, ssp:s=4, pbsp:beta=2, pssp:s=4,beta=2, asp]", runs},
      {"seeds", ValueType::count, "N", "runs of each barrier [5]", runs},
      {"evals", ValueType::count, "N", "evaluations of a run, at equally spaced instants [30]",
       runs},
      {"eval-samples", ValueType::count, "N",
       "test samples of each evaluation: the first ones of the data [500]", runs},
      {"out", ValueType::text, "DIR",
       "the folder of the report and its data: new, empty, or of an earlier report [psp-train]",
       out},
      {"markdown", ValueType::text, "DIR",
       "write the report as a page of Markdown too, with its pictures", out}};
}

/// Returns the settings of the training job, including the defaults of this command, but without a
/// barrier.
Settings job_settings(const Settings& settings) {
  Settings defaults{{"mode", "central", "--mode"}, {"eval-every", "1", "--eval-every"}};
  for (const JobOption& option : job_options)
    if (!option.default_value.empty())
      defaults.push_back({std::string{option.name}, std::string{option.default_value},
                          "--" + std::string{option.name}});
  Settings given;
  for (const Setting& setting : settings)
    if (is_job_option(setting.key)) given.push_back(setting);
  return override_settings(std::move(defaults), given);
}

/// Returns the settings of the barriers to compare: the given ones, or those of the published run.
Settings barrier_settings(const Settings& settings) {
  Settings barriers;
  for (const Setting& setting : settings)
    if (setting.key == "barrier") barriers.push_back(setting);
  if (barriers.empty())
    for (const char* text : published_barriers) barriers.push_back({"barrier", text, "--barrier"});
  return barriers;
}

/// Stores the options that are whole numbers.
Result<void> put_counts(TrainingOptions& options, const Settings& settings) {
  // A fifth of 10 evaluations is 2, the fewest that have a standard deviation.
  constexpr std::uint64_t evals_min = 10;
  for (auto [option, into, min, max] :
       {std::tuple{"seeds", &options.seeds, std::uint64_t{1}, std::uint64_t{1000}},
        std::tuple{"seed", &options.seed, std::uint64_t{0}, UINT64_MAX},
        std::tuple{"evals", &options.evals, evals_min, std::uint64_t{1000}},
        std::tuple{"eval-samples", &options.samples, std::uint64_t{1}, std::uint64_t{UINT32_MAX}}})
    if (auto put = put_count(*into, settings, option, min, max); !put) return put;
  if (options.seeds - 1 > UINT64_MAX - options.seed)
    return Error{"--seeds: " + std::to_string(options.seeds) + " seeds from " +
                 std::to_string(options.seed) + " on exceed the largest seed, " +
                 std::to_string(UINT64_MAX)};
  return {};
}

}  // namespace

const std::vector<KeyDescription>& training_keys() {
  static const std::vector<KeyDescription> all = [] {
    std::vector<KeyDescription> keys;
    for (const JobOption& option : job_options) {
      KeyDescription key = *find_key(option.name);
      if (!option.help.empty()) key.help = option.help;
      if (key.name == "seconds") key.group = "Runs";
      keys.push_back(std::move(key));
    }
    for (KeyDescription& key : own_keys()) keys.push_back(std::move(key));
    return keys;
  }();
  return all;
}

std::string training_footer() {
  return "\nEvery barrier trains for the same wall time under every seed, one run after the other "
         "in turn, in\ncentral mode. Choose a delay much longer than the time to compute 6 "
         "steps; else the processors and\nnot the barriers decide the figures. Models are "
         "evaluated "
         "between the runs; a run keeps as many of\nthem in memory as it has evaluations. Another "
         "machine, or a later run, gives other figures.\nExit codes: 0 done, whether or not claims "
         "are reproduced; 1 a run failed, or nothing could be\nwritten; 2 bad input; 130 "
         "interrupted, then nothing was written.";
}

Result<TrainingOptions> parse_training_options(const Settings& settings, const Registry& registry) {
  if (location_of(settings, "data").empty())
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
    Settings with_barrier = job;
    with_barrier.push_back(barrier);
    const auto made = make_job(with_barrier, registry);
    if (!made) return made.error();
    if (std::ranges::find(options.barriers, made->train.job.barrier) != options.barriers.end())
      return Error{barrier.location + ": '" + barrier.text + "' is given twice; valid: each once"};
    options.barriers.push_back(made->train.job.barrier);
    if (options.job.empty()) options.job = std::move(with_barrier);
  }
  return options;
}

std::string print(const TrainingOptions& options) {
  std::string text;
  const auto add = [&](const std::string& key, const std::string& value) {
    text += (text.empty() ? "--" : " --") + key + " " + shell_word(value);
  };
  for (const Setting& setting : options.job)
    if (is_job_option(setting.key) && setting.key != "quiet" && setting.key != "seed")
      add(setting.key, setting.text);
  for (const auto& barrier : options.barriers) add("barrier", barrier::print(barrier));
  add("seed", std::to_string(options.seed));
  add("seeds", std::to_string(options.seeds));
  add("evals", std::to_string(options.evals));
  add("eval-samples", std::to_string(options.samples));
  return text;
}

}  // namespace starling::program
