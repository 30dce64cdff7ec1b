#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "starling/base/json_text.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/models/sample_order.hpp"
#include "starling/tools/bench/bench_commands.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/default_model.hpp"
#include "starling/tools/report/machine.hpp"
#include "starling/tools/report/statistics.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/model_file.hpp"

namespace starling::program {
namespace {

using Clock = std::chrono::steady_clock;

/// The model to measure, and the data that it trains on.
struct Subject {
  AnyData data;
  std::shared_ptr<const AnyModel> model;
};

/// The measurements of all repeats.
struct Speeds {
  /// Steps per second of wall time, and of processor time: one value for each repeat.
  std::vector<double> by_wall;
  std::vector<double> by_processor;
  /// The number of steps of all repeats together.
  std::uint64_t steps = 0;
  /// The loss of the last step.
  double loss = 0;
};

double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

/// Loads the data and makes the model, or the model that suits the data if the options name none.
Result<Subject> load(const Registry& registry, const BenchTrainOptions& options) {
  auto data = load_source(registry, options.data, options.seed);
  if (!data) return std::move(data).error().within("--data");
  if (data->size() == 0) return Error{"--data: " + options.data + ": has no samples"};
  const std::string text =
      options.model.empty() ? default_model(registry, options.data, *data) : options.model;
  if (text.empty())
    return Error{"--model: is needed for data of its own type; " +
                 valid_names(models_for(registry, *data))};
  auto model = make_model(registry, text, *data);
  if (!model) return std::move(model).error().within("--model");
  if (auto valid = check_parameters(**model); !valid)
    return std::move(valid).error().within("--model");
  if (auto fits = (*model)->accepts(*data); !fits) return std::move(fits).error().within("--model");
  if (!(*model)->learns_by_gradients())
    return Error{"--model: " + (*model)->print() +
                 " is an algorithm; valid: a model that learns by gradients"};
  return Subject{*std::move(data), *std::move(model)};
}

/// Makes the steps of one repeat, and adds its speeds.
void measure_once(const std::function<double()>& step, const BenchTrainOptions& options,
                  Speeds& speeds) {
  const auto started_at = Clock::now();
  const double processor_started_at = processor_seconds();
  const double limit_s = in_seconds(options.time);
  std::uint64_t steps = 0;
  do {
    speeds.loss = step();
    ++steps;
  } while (options.steps ? steps < *options.steps : seconds_since(started_at) < limit_s);
  const auto count = static_cast<double>(steps);
  speeds.by_wall.push_back(count / seconds_since(started_at));
  speeds.by_processor.push_back(count / std::max(1e-9, processor_seconds() - processor_started_at));
  speeds.steps += steps;
}

Speeds measure(const Subject& subject, const BenchTrainOptions& options) {
  const auto step = subject.model->make_stepper(
      subject.data, {.optimizer = options.optimizer, .batch = options.batch, .seed = options.seed});
  // The first steps allocate memory and make oneDNN's primitives.
  constexpr int warm_up_steps = 5;
  for (int i = 0; i < warm_up_steps; ++i) step();
  Speeds speeds;
  for (std::uint64_t i = 0; i < options.repeats; ++i) measure_once(step, options, speeds);
  return speeds;
}

std::uint64_t batch_of(const Subject& subject, const BenchTrainOptions& options) {
  return std::min<std::uint64_t>(options.batch, subject.data.size());
}

/// Returns the mean number of samples in a step. The last batch of an epoch may be smaller than the
/// others.
double samples_per_step(const Subject& subject, const BenchTrainOptions& options) {
  const models::SampleOrder order{subject.data.size(), 1, options.batch, 0};
  return static_cast<double>(subject.data.size()) / static_cast<double>(order.steps_per_epoch());
}

std::string json_of(const Subject& subject, const BenchTrainOptions& options,
                    const Speeds& speeds) {
  nlohmann::ordered_json json = program::json_of(this_machine());
  json["model"] = subject.model->print();
  json["parameters"] = models::total_size(subject.model->parameters());
  json["data"] = options.data;
  json["data_shape"] = describe(subject.data);
  json["optimizer"] = models::print(options.optimizer);
  json["batch"] = batch_of(subject, options);
  json["seed"] = options.seed;
  json["repeats"] = options.repeats;
  json["steps"] = speeds.steps;
  json["steps_per_s"] = {{"median", median(speeds.by_wall)},
                         {"min", std::ranges::min(speeds.by_wall)},
                         {"max", std::ranges::max(speeds.by_wall)},
                         {"all", speeds.by_wall}};
  json["steps_per_processor_s"] = {{"median", median(speeds.by_processor)},
                                   {"min", std::ranges::min(speeds.by_processor)},
                                   {"max", std::ranges::max(speeds.by_processor)},
                                   {"all", speeds.by_processor}};
  json["loss"] = speeds.loss;
  json["peak_memory_bytes"] = peak_memory_bytes();
  return json_text(json) + "\n";
}

/// Returns the median and the range of the values: "71.2 (69.8 to 72.0)".
std::string median_and_range(const std::vector<double>& values) {
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", median(values), std::ranges::min(values),
                     std::ranges::max(values));
}

std::string table_of(const Subject& subject, const BenchTrainOptions& options,
                     const Speeds& speeds) {
  const auto line = [](const char* name, const std::string& value) {
    return fmt::format("{:<12}{}\n", name, value);
  };
  const double rate = median(speeds.by_wall);
  std::string text = print(this_machine());
  text += line("model", fmt::format("{}, {} parameters", subject.model->print(),
                                    models::total_size(subject.model->parameters())));
  text += line("data", fmt::format("{} ({})", options.data, describe(subject.data)));
  text += line("optimizer", models::print(options.optimizer));
  text += line("batch", std::to_string(batch_of(subject, options)));
  text += line("repeats",
               fmt::format("{}, {} in all", options.repeats, print_count(speeds.steps, "step")));
  text += "\n" + line("steps/s", median_and_range(speeds.by_wall));
  text += line("  processor", median_and_range(speeds.by_processor));
  text += line("samples/s", fmt::format("{:.0f}", rate * samples_per_step(subject, options)));
  text += line("a step", fmt::format("{:.3f} ms", 1e3 / rate));
  text += line("last loss", fmt::format("{:.4g}", speeds.loss));
  text += line("memory",
               fmt::format("{:.0f} MB at most", static_cast<double>(peak_memory_bytes()) / 1e6));
  return text;
}

}  // namespace

Result<int> bench_train_command(const Registry& registry, const BenchTrainOptions& options) {
  const auto subject = load(registry, options);
  if (!subject) return subject.error();
  const Speeds speeds = measure(*subject, options);
  if (!std::isfinite(speeds.loss)) {
    print_error(
        "the loss is not finite any more, and figures of such steps mean nothing; valid: "
        "--optimizer with a lower lr");
    return job_failed;
  }
  return write_stdout(
      options.json ? json_of(*subject, options, speeds) : table_of(*subject, options, speeds),
      done);
}

}  // namespace starling::program
