#include "starling/tools/sim/learning.hpp"

#include <algorithm>
#include <utility>

#include "starling/tools/job/job.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/program/parallel.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/default_model.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

/// Returns the training job that the settings describe. Ignores settings that do not affect
/// learning.
Result<Job> parse_training(const Settings& settings, const Registry& registry) {
  Job job;
  for (const Setting& setting : settings) {
    if (setting.key != "seed" && std::ranges::count(learning_keys(), setting.key) == 0) continue;
    if (auto set = find_key(setting.key)->set({job, registry, setting.text}); !set)
      return std::move(set).error().within(setting.location);
  }
  return job;
}

/// Returns the location of the setting of an option; the option's flag if it is not set.
std::string location_or_flag(const Settings& settings, const char* option) {
  const std::string location = location_of(settings, option);
  return location.empty() ? std::string{"--"} + option : location;
}

sim::ProtocolOptions protocol_options(const SimJob& job, const actor::JobOptions& train) {
  sim::ProtocolOptions options;
  options.mode = job.mode;
  options.recheck = job.options.recheck;
  options.workers = job.options.workers;
  options.exchange = train.exchange;
  options.cache = train.cache;
  actor::JobOptions sizes;
  sizes.mode = job.mode;
  sizes.workers = job.options.workers;
  sizes.shards = train.shards;
  options.shards = actor::owner_count(sizes);
  options.steps = job.options.steps_max;
  options.horizon = job.options.horizon;
  options.step_time = job.options.step_time;
  options.slowness = job.options.slowness;
  options.absences = job.options.absences;
  options.link = job.link;
  const auto points = static_cast<core::Time::rep>(job.options.points);
  options.point_every = std::max(core::Time{1}, job.options.horizon / points);
  return options;
}

/// Estimates the memory of a run in bytes. Each worker has a copy of the model and a gradient, and
/// both may be in flight too; if it compresses gradients, it has a residual. The owners hold the
/// model, and twice its size for the optimiser, and with packet loss each range has two owners. 16
/// MiB are for everything else.
std::uint64_t estimate_bytes(const SimJob& job, const AnyModel& model, bool compresses) {
  const std::size_t parameter_bytes = element_bytes(model.element_type());
  const std::uint64_t model_bytes = model.layout(actor::JobOptions{}).size * parameter_bytes;
  const std::uint64_t owners_bytes = (job.link.loss > 0 ? 6 : 3) * model_bytes;
  return (compresses ? 5 : 4) * job.options.workers * model_bytes + owners_bytes +
         (std::uint64_t{1} << 24U);
}

/// Returns the options of run `run`. Runs are numbered barrier by barrier.
sim::LearnOptions learn_options(const SimJob& job, const Learning& learning, std::size_t run) {
  sim::LearnOptions options = learning.options;
  options.protocol.barrier = job.barriers[run / job.seeds];
  options.protocol.seed = job.options.seed + run % job.seeds;
  // Workers that hand in early end when all samples of the epochs are taken, not after a fixed
  // number of steps.
  if (barrier::hands_in_early(options.protocol.barrier)) options.epochs = job.epochs;
  return options;
}

/// Returns how much of a run is done, 0 to 1: the share of its time or of its steps, whichever is
/// larger.
double done_share(const sim::StepOptions& options, const sim::Point& point) {
  const double time_share =
      static_cast<double>(point.at.count()) / static_cast<double>(options.horizon.count());
  if (options.steps_max == barrier::finished) return time_share;
  const double all_updates =
      static_cast<double>(options.steps_max) * static_cast<double>(options.workers);
  return std::max(time_share, static_cast<double>(point.updates) / all_updates);
}

/// Returns the counts of those messages that barriers send. A BatchDone counts as an arrival, and a
/// HandIn as a release.
sim::Messages barrier_message_counts(const sim::TrafficByKind& traffic) {
  return {.arrivals = sim::traffic_of<core::Arrived>(traffic).messages +
                      sim::traffic_of<core::BatchDone>(traffic).messages,
          .releases = sim::traffic_of<core::Proceed>(traffic).messages +
                      sim::traffic_of<core::HandIn>(traffic).messages,
          .queries = sim::traffic_of<core::StepQuery>(traffic).messages,
          .answers = sim::traffic_of<core::StepAnswer>(traffic).messages,
          .notify_requests = sim::traffic_of<core::NotifyRequest>(traffic).messages,
          .notices = sim::traffic_of<core::Notice>(traffic).messages};
}

/// Returns the figures of a run: those that the step level has too, and those of the model and of
/// the network.
SimRun protocol_figures_of(const sim::LearnOptions& options, sim::ProtocolResult result) {
  sim::StepResult steps;
  steps.steps = std::move(result.steps);
  for (const sim::ProtocolPoint& point : result.curve) steps.curve.push_back(point);
  steps.updates = result.updates;
  steps.draws = result.draws;
  steps.passes = result.passes;
  steps.waiting_share = result.waiting_share;
  steps.messages = barrier_message_counts(result.traffic);
  steps.elapsed = result.elapsed;
  steps.max_lag = result.max_lag;
  sim::StepOptions step_options;
  step_options.workers = options.protocol.workers;
  step_options.seed = options.protocol.seed;
  SimRun run = figures_of(step_options, steps);
  for (sim::ProtocolPoint& point : result.curve) run.metrics.push_back(std::move(point.metrics));
  run.longest_gap = result.longest_gap;
  run.traffic = result.traffic;
  run.packets = result.packets;
  return run;
}

}  // namespace

const std::vector<std::string>& learning_keys() {
  static const std::vector<std::string> keys{
      "data", "test", "split",       "holdout",  "scale", "model",  "dtype",    "optimizer",
      "l2",   "clip", "compression", "schedule", "batch", "shards", "exchange", "cache"};
  return keys;
}

Result<Learning> make_learning(const SimJob& job, const Settings& settings,
                               const Registry& registry) {
  auto training = parse_training(settings, registry);
  if (!training) return std::move(training).error();
  const actor::TrainOptions& train = training->train;
  if (auto fits = check_shards(train.job.shards, job.mode, settings); !fits)
    return std::move(fits).error();
  if (auto fits = core::check_exchange(train.job.exchange, job.mode); !fits)
    return add_location(std::move(fits).error(), settings);
  if (train.dynamic_batches && train.batch < job.options.workers)
    return models::small_total_error(train.batch, job.options.workers)
        .within(location_or_flag(settings, "batch"));
  auto data = load_data(registry, training->data);
  if (!data) return add_location(std::move(data).error(), settings);
  const std::string text =
      complete_model(registry, training->model, training->data, *data, training->element_type);
  auto model = make_model(registry, text, data->train, training->element_type);
  if (!model) {
    return std::move(model).error().within(location_or_flag(settings, "model"));
  }
  if (auto valid = check_gradient_options(**model, settings); !valid)
    return std::move(valid).error();
  if (data->test)
    if (auto fits = accepts_test_data(**model, data->train.table(), *data->test); !fits)
      return std::move(fits).error().within(location_or_flag(settings, "test"));
  const models::Recipe recipe = (*model)->recipe();
  const models::Scale scale = scale_of(registry, training->data, recipe, data->train);
  data = scale_data(scale, *std::move(data));
  if (!data) return add_location(std::move(data).error(), settings);
  for (const AnyData* part : {&data->train, data->test ? &*data->test : nullptr})
    if (part != nullptr)
      if (auto fits = (*model)->accepts(*part); !fits)
        return std::move(fits).error().within(location_or_flag(settings, "scale"));
  training->train.job.workers = job.options.workers;
  training->train.job.steps = job.options.steps_max;
  (void)apply_recipe(recipe, training->train, settings, data->train.size());
  if (auto fits = check_memory(
          job, settings, estimate_bytes(job, **model, models::compresses(train.compression)), 0);
      !fits)
    return std::move(fits).error();
  Learning learning{*std::move(model), *std::move(data), {}, {}};
  learning.options = {.protocol = protocol_options(job, train.job),
                      .optimizer = train.optimizer,
                      .schedule = train.schedule,
                      .clip = train.clip,
                      .compression = train.compression,
                      .l2 = train.l2,
                      .batch = train.batch,
                      .dynamic_batches = train.dynamic_batches,
                      .steps_max = job.steps_limit};
  // Workers with dynamic batches end when all samples of the epochs are taken, not after a fixed
  // number of steps.
  if (train.dynamic_batches) learning.options.epochs = job.epochs;
  if (core::has_servers(job.mode)) {
    // As in `train`: at most one server for each range.
    std::size_t& shards = learning.options.protocol.shards;
    actor::JobOptions sizes;
    sizes.mode = job.mode;
    sizes.workers = job.options.workers;
    sizes.shards = shards;
    shards = std::min(shards, learning.model->layout(sizes).ranges.size());
  }
  const bool descends = learning.model->learns_by_gradients();
  learning.learned = {
      .data = training->data.data,
      .model = learning.model->print(),
      .optimizer = descends ? models::print(train.optimizer) : "",
      .exchange = train.job.exchange,
      .compression = models::compresses(train.compression) ? models::print(train.compression) : "",
      .batch = descends ? actor::print_batch(train) : "",
      .shards = core::has_servers(job.mode) ? learning.options.protocol.shards : 0};
  if (train.job.cache)
    if (auto valid = core::check_cache(train.optimizer); !valid)
      return add_location(std::move(valid).error(), settings);
  for (const barrier::Barrier& barrier : job.barriers)
    if (auto valid = check_hand_ins(*learning.model, barrier, train.dynamic_batches); !valid)
      return std::move(valid).error().within(location_or_flag(settings, "barrier"));
  for (const barrier::Barrier& barrier : job.barriers) {
    training->train.job.barrier = barrier;
    if (auto valid = check_compression(*learning.model, training->train); !valid)
      return std::move(valid).error().within(location_or_flag(settings, "compression"));
  }
  for (std::size_t barrier = 0; barrier < job.barriers.size(); ++barrier)
    if (auto valid = sim::check(learn_options(job, learning, barrier * job.seeds).protocol); !valid)
      return add_location(std::move(valid).error(), settings);
  return learning;
}

Result<SimRuns> simulate_learning(const SimJob& job, const Learning& learning,
                                  const std::function<void(const OverallProgress&)>& on_progress) {
  const std::size_t count = job.barriers.size() * job.seeds;
  SimRuns runs(count);
  std::vector<std::string> errors(count);
  std::vector<ProgressEstimator::Kind> kinds;
  for (std::size_t i = 0; i < count; ++i)
    kinds.push_back(job.options.steps_max == barrier::finished
                        ? kind_of(i / job.seeds, job.barriers[i / job.seeds])
                        : ProgressEstimator::Kind{i / job.seeds, 1});
  ProgressEstimator estimator{kinds, threads_of(job)};
  const auto order = costliest_first(kinds);
  const auto simulate_one = [&](std::size_t position) {
    const std::size_t i = order[position];
    estimator.begin(i);
    sim::LearnOptions options = learn_options(job, learning, i);
    options.on_point = [&](const sim::ProtocolPoint& point) {
      // Below 1, which would stop the clock of the run.
      estimator.set(i, std::min(0.999, done_share(job.options, point)));
      return true;
    };
    const AnyData* test = learning.data.test ? &*learning.data.test : nullptr;
    auto result = learning.model->simulate(learning.data.train, test, options);
    if (result) {
      errors[i] = result->error;
      runs[i] = protocol_figures_of(options, *std::move(result));
    } else {
      errors[i] = result.error().message;
    }
    estimator.set(i, 1);
  };
  for_each_piece(count, threads_of(job), simulate_one, [&] { on_progress(estimator.progress()); });
  for (std::size_t i = 0; i < count; ++i)
    if (!errors[i].empty())
      return Error{barrier::print(job.barriers[i / job.seeds]) + ", seed " +
                   std::to_string(job.options.seed + i % job.seeds) + ": " + errors[i]};
  return runs;
}

}  // namespace starling::program
