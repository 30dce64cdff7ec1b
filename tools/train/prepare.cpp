#include "starling/tools/train/prepare.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/core/training/compression.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/core/training/hand_ins.hpp"
#include "starling/models/batch_sizes.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/files/metrics_file.hpp"
#include "starling/tools/job/barrier_notes.hpp"
#include "starling/tools/job/input_files.hpp"
#include "starling/tools/job/target.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/default_model.hpp"
#include "starling/tools/registry/net_file.hpp"
#include "starling/tools/registry/prediction_metrics.hpp"
#include "starling/tools/train/advice.hpp"
#include "starling/tools/train/checkpoint.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/html_report.hpp"
#include "starling/tools/train/init_model.hpp"

namespace starling::program {
namespace {

/// Puts the location of a key before an error, if the key was set.
Error with_location(Error error, const Settings& settings, const char* key) {
  const std::string location = location_of(settings, key);
  return location.empty() ? error : std::move(error).within(location);
}

/// Loads the job's data, not yet scaled. Shows on stderr that it does so.
Result<TrainAndTest> load_job_data(const Registry& registry, const Job& job,
                                   const Settings& settings) {
  Display display{job.quiet};
  display.begin("loading " + job.data.data);
  const auto started_at = std::chrono::steady_clock::now();
  auto data = load_data(registry, job.data);
  if (data) display.finish(loaded_text(*data, std::chrono::steady_clock::now() - started_at));
  if (!data) return add_location(std::move(data).error(), settings);
  return data;
}

/// Makes the job's model, or the model that suits the data if the job names none. Refuses a model
/// that does not accept the data.
Result<std::shared_ptr<const AnyModel>> make_job_model(const Registry& registry, const Job& job,
                                                       const TrainAndTest& data,
                                                       const Settings& settings) {
  const std::string text = complete_model(registry, job.model, job.data, data, job.element_type);
  if (text.empty())
    return Error{"--model: is needed for data of its own type; " +
                 valid_names(models_for(registry, data.train))};
  auto model = make_model(registry, text, data.train, job.element_type);
  if (!model) {
    const auto other = other_task(job.data.data, data.train);
    const bool fits = other && make_model(registry, text, other->shape, job.element_type);
    const std::string hint = fits ? "; or read its labels otherwise: " + other->source : "";
    return with_location(Error{model.error().message + hint}, settings, "model");
  }
  if (auto valid = check_parameters(**model); !valid)
    return with_location(std::move(valid).error(), settings, "model");
  if (auto fits = (*model)->accepts(data.train); !fits)
    return with_location(std::move(fits).error(), settings, "model");
  if (data.test)
    if (auto fits = accepts_test_data(**model, data.train.table(), *data.test); !fits)
      return with_location(std::move(fits).error(), settings, "test");
  return model;
}

/// Converts epochs to steps and sets the options that depend on the data and the model, so that
/// reports show the values that are used.
actor::TrainOptions fill_in_options(const Job& job, std::uint64_t samples,
                                    const ModelDescription& model) {
  actor::TrainOptions options = job.train;
  if (job.epochs) {
    auto steps = actor::steps_in_epochs(*job.epochs, options, samples);
    options.epochs = job.epochs;
    if (job.has_default_length && steps < model.recipe().steps) {
      steps = model.recipe().steps;
      options.epochs = static_cast<double>(steps) /
                       static_cast<double>(actor::steps_per_epoch(options, samples));
    }
    options.steps_max = options.job.steps;
    options.job.steps = std::min(options.job.steps, steps);
  }
  // An epoch of a small table has only a step or two. Therefore a job without another limit than
  // that of steps makes about 100 evaluations at most.
  const bool has_other_limit = options.job.time || options.job.until;
  const core::Step interval_min = has_other_limit ? 1 : options.job.steps / 100;
  options.job.evaluate_every = job.evaluate_every.value_or(
      std::max<core::Step>(actor::steps_per_epoch(options, samples), interval_min));
  options.batch =
      options.dynamic_batches
          ? std::max(std::min<std::size_t>(options.batch, samples), options.job.workers)
          : models::SampleOrder{samples, options.job.workers, options.batch, 0}.batch_size();
  if (core::has_servers(options.job.mode))
    options.job.shards =
        std::min(actor::owner_count(options.job), model.layout(options.job).ranges.size());
  return options;
}

/// Returns a shorter name for a model if its text `printed` is longer than 60 characters; else an
/// empty text. The shorter name is `setting`, the value of the key `model`, if it names a net's
/// file, else the beginning of `printed`.
std::string short_name(const std::string& setting, const std::string& printed) {
  constexpr std::size_t length_max = 60;
  if (printed.size() <= length_max) return {};
  const auto spec = Spec::parse(setting);
  return spec && !net_file_in(*spec).empty() ? setting : printed.substr(0, length_max - 3) + "...";
}

bool has(const models::Metrics& metrics, const std::string& name) {
  return std::ranges::find(metrics, name, &models::Metric::name) != metrics.end();
}

/// Returns a function that evaluations call to compute the metric `name`, which the model itself
/// does not compute.
actor::ExtraMetrics extra_metrics(const PreparedRun& ready, const std::string& name) {
  return [model = ready.model, data = *ready.data.test, options = ready.resolved.options.job,
          name](const std::vector<core::RangeState>& states) -> models::Metrics {
    const auto value = metric_of(*model, model->collect(options, states), data, name);
    return value ? models::Metrics{{name, *value}} : models::Metrics{};
  };
}

/// Checks the job's target. If the model does not compute the target's metric, sets the function
/// that does.
Result<void> set_target_metric(PreparedRun& ready) {
  auto& options = ready.resolved.options.job;
  if (!options.until) return {};
  if (!ready.data.test) return Error{"until: there is no test data; valid: --test SOURCE"};
  if (options.evaluate_every == 0)
    return Error{"until: has no effect with eval-every 0; valid: eval-every of 1 or more"};
  const models::Metrics model_metrics = ready.model->metrics_of_one_sample(*ready.data.test);
  const std::string& name = options.until->metric;
  if (has(model_metrics, name)) return {};
  if (auto valid =
          check_target(*options.until, model_metrics, metric_names(*ready.model, *ready.data.test));
      !valid)
    return valid;
  options.extra_metrics = extra_metrics(ready, name);
  return {};
}

/// Refuses `patience` and `keep best` if evaluations have no test loss. `test` may be null.
Result<void> check_selection(const Job& job, const AnyModel& model, const AnyData* test) {
  if (job.patience == 0 && job.keep != Keep::best) return {};
  const bool has_loss = test != nullptr && has(model.metrics_of_one_sample(*test), "loss");
  return check_test_loss(job, model.print(), test != nullptr, has_loss);
}

/// Reads the checkpoint from which the job resumes, for its scaling. The job must use that scaling
/// instead of computing it from the data, because it may come from the `--init` model of the job
/// that wrote the checkpoint. Returns nothing if the job resumes from no checkpoint, if
/// the job has another scaling, or if the file is not valid: then resume_job() says what is wrong
/// with the file.
std::optional<StoredModel> read_checkpoint_scaling(const Job& job, const AnyModel& model,
                                                   const AnyData& train) {
  if (job.resume.empty()) return std::nullopt;
  auto stored = read_model(job.resume, job.accepts_missing_checksum ? Trust::any : Trust::checked);
  if (!stored || stored->notes.data.scale != job.data.scale || !check_init(*stored, model, train))
    return std::nullopt;
  return *std::move(stored);
}

/// Sets the job's initial states to those of its checkpoint. Refuses a checkpoint in which all
/// workers have already made the job's steps.
Result<void> resume_job(PreparedRun& ready, const Settings& settings) {
  auto& resolved = ready.resolved;
  auto checkpoint =
      read_checkpoint(ready.job.resume, *ready.model, resolved, ready.identity,
                      ready.job.accepts_missing_checksum ? Trust::any : Trust::checked);
  if (!checkpoint) return with_location(std::move(checkpoint).error(), settings, "resume");
  const auto entries =
      actor::first_ledger_entries(checkpoint->states, resolved.options.job.workers);
  const core::Step limit = resolved.options.job.steps;
  if (std::ranges::all_of(entries, [&](const auto& entry) { return entry.step >= limit; }))
    return Error{location_of(settings, "resume") + ": " + ready.job.resume + ": is at step " +
                 std::to_string(entries[0].step) + " already, and the job ends at " +
                 std::to_string(limit) + "; valid: more steps or epochs"};
  for (const auto& entry : entries) resolved.steps_before += entry.step;
  resolved.updates_before = checkpoint->updates;
  if (!checkpoint->changes.empty())
    ready.resume_note =
        location_of(settings, "resume") + ": " + ready.job.resume + ": " + checkpoint->changes;
  resolved.options.resume = std::move(checkpoint->states);
  resolved.options.job.former_deals = std::move(checkpoint->former_deals);
  return {};
}

}  // namespace

Result<void> check_files(const Registry& registry, const Job& job, const Settings& settings,
                         const std::string& job_file) {
  auto taken = input_files(registry, job, settings, job_file);
  const auto claim = [&](const char* key, const std::string& path, auto check) -> Result<void> {
    const FileUse use{location_of(settings, key), path};
    if (path.empty()) return {};
    if (auto free = check_no_conflict(use, taken); !free) return free;
    taken.push_back(use);
    if (auto writable = check(path); !writable)
      return std::move(writable).error().within(use.location);
    return {};
  };
  if (auto free = claim("checkpoint", job.checkpoint, check_writable); !free) return free;
  taken.push_back({location_of(settings, "resume"), job.resume});
  if (auto free = claim("save", job.save, check_writable); !free) return free;
  if (auto free = claim("report", job.report, check_report); !free) return free;
  if (auto free = claim("trace", job.trace, check_writable); !free) return free;
  return claim("metrics", job.metrics, MetricsFile::check);
}

void print_barrier_notes(const Job& job, const Settings& settings) {
  if (job.quiet) return;
  const std::span barriers{&job.train.job.barrier, 1};
  warn_of_unused_recheck(barriers, settings);
  note_full_quorums(barriers, job.train.job.workers, settings);
}

void print_batch_note(const Job& job, const ResolvedJob& resolved, const Settings& settings) {
  const std::string location = location_of(settings, "batch");
  if (job.quiet || location.empty() || resolved.options.batch >= job.train.batch) return;
  print_error(location + ": " +
              (job.train.dynamic_batches ? "all workers together have " : "a worker's share is ") +
              print_count(resolved.options.batch, "sample") + ", so batches are no larger");
}

ResolvedJob resolve_job(const Job& job, const Settings& settings, const ModelDescription& model,
                        const DataSize& data) {
  ResolvedJob resolved{.options = fill_in_options(job, data.train_samples, model),
                       .data = job.data.data,
                       .data_shape = data.description,
                       .model = model.print(),
                       .learns_by_gradients = model.learns_by_gradients(),
                       .element_type = model.element_type(),
                       .train_samples = data.train_samples,
                       .test_samples = data.test_samples};
  resolved.short_model = short_name(job.model, resolved.model);
  if (job.data.scale.value_or(models::Scale::none) != models::Scale::none)
    resolved.scale = print(*job.data.scale);
  resolved.has_default_schedule =
      apply_recipe(model.recipe(), resolved.options, settings, resolved.train_samples);
  resolved.steps_per_epoch = actor::steps_per_epoch(resolved.options, resolved.train_samples);
  return resolved;
}

Result<void> check_test_loss(const Job& job, const std::string& model, bool has_test_data,
                             bool has_loss) {
  const char* key = job.patience > 0 ? "patience" : job.keep == Keep::best ? "keep" : nullptr;
  if (key == nullptr || has_loss) return {};
  const std::string needs = std::string{key} + ": needs ";
  return Error{has_test_data ? needs + "a model with a metric loss; " + model + " has none"
                             : needs + "test data; valid: --test SOURCE"};
}

Result<void> check_hand_ins(const AnyModel& model, const barrier::Barrier& barrier,
                            bool dynamic_batches) {
  return model.learns_by_gradients()
             ? core::check_hand_ins(barrier, dynamic_batches, model.parameters())
             : core::check_needs_no_gradients(barrier);
}

Result<void> check_compression(const AnyModel& model, const actor::TrainOptions& options) {
  return core::check_compression(options.compression, options.job.exchange, options.job.barrier,
                                 model.parameters(), element_bytes(model.element_type()));
}

Result<void> check_gradient_options(const AnyModel& model, const Settings& settings) {
  if (model.learns_by_gradients()) return {};
  for (const char* key : {"optimizer", "l2", "clip", "compression", "schedule", "batch", "epochs"})
    if (const std::string location = location_of(settings, key); !location.empty())
      return Error{location + ": algorithm " + model.print() +
                   " computes its own updates; valid: no " + key};
  if (const std::string exchange = text_of(settings, "exchange"); !exchange.empty())
    if (auto valid = core::check_exchange_without_gradients(exchange); !valid)
      return add_location(std::move(valid).error(), settings);
  return {};
}

bool apply_recipe(const models::Recipe& recipe, actor::TrainOptions& options,
                  const Settings& settings, std::size_t samples) {
  const auto is_set = [&](const char* key) { return !location_of(settings, key).empty(); };
  if (!is_set("l2") && recipe.decays_weights) options.l2 = 1 / static_cast<double>(samples);
  if (!is_set("optimizer")) options.optimizer = recipe.optimizer;
  if (models::print(options.optimizer) != models::print(recipe.optimizer)) return false;
  if (is_set("schedule") || !recipe.decays_rate) return false;
  const auto epoch = static_cast<double>(actor::steps_per_epoch(options, samples));
  const double samples_seen =
      static_cast<double>(options.job.steps) / epoch * static_cast<double>(samples);
  // Without a limit of steps, nobody knows how many samples the job will see.
  if (options.job.steps != barrier::unlimited && samples_seen < 1e18)
    options.schedule =
        models::CosineRate{.samples = static_cast<std::uint64_t>(std::ceil(samples_seen))};
  return true;
}

Result<PreparedRun> prepare(const Registry& registry, const Settings& settings,
                            const std::string& job_file) {
  auto job = make_job(settings, registry);
  if (!job) return std::move(job).error();
  if (auto fit = check_files(registry, *job, settings, job_file); !fit)
    return std::move(fit).error();
  print_barrier_notes(*job, settings);
  std::optional<StoredModel> init;
  if (!job->init.empty()) {
    auto stored = read_init(*job);
    if (!stored) return with_location(std::move(stored).error(), settings, "init");
    init = *std::move(stored);
  }
  auto data = load_job_data(registry, *job, settings);
  if (!data) return std::move(data).error();
  // The shape is checked before the model is made, because the error of make_job_model() would
  // suggest a model that does not fit the file of `--init`.
  if (const models::Table* table = data->train.table(); init && table != nullptr)
    if (auto fits = check_shape(*init, *table); !fits)
      return with_location(std::move(fits).error(), settings, "init");
  auto model = make_job_model(registry, *job, *data, settings);
  if (!model) return std::move(model).error();
  if (init)
    if (auto fits = check_init(*init, **model, data->train); !fits)
      return with_location(std::move(fits).error(), settings, "init");
  if (auto valid = check_gradient_options(**model, settings); !valid)
    return std::move(valid).error();
  if (!(*model)->learns_by_gradients() && job->has_default_length)
    return Error{"--steps: is needed for algorithm " + (*model)->print() +
                 "; valid: steps, seconds or until"};
  const models::Recipe recipe = (*model)->recipe();
  job->data.scale = scale_of(registry, job->data, recipe, data->train);
  {
    const auto checkpoint = read_checkpoint_scaling(*job, **model, data->train);
    const StoredModel* scaled_like = checkpoint ? &*checkpoint : init ? &*init : nullptr;
    data = scaled_like != nullptr ? scale_like_stored(*scaled_like, *std::move(data))
                                  : scale_data(*job->data.scale, *std::move(data));
  }
  if (!data) return add_location(std::move(data).error(), settings);
  for (const AnyData* part : {&data->train, data->test ? &*data->test : nullptr})
    if (part != nullptr)
      if (auto fits = (*model)->accepts(*part); !fits)
        return with_location(std::move(fits).error(), settings, "scale");
  ResolvedJob resolved =
      resolve_job(*job, settings, **model,
                  {data->train.size(), data->test ? data->test->size() : 0, describe(data->train)});
  if (job->train.dynamic_batches && job->train.batch < job->train.job.workers)
    return with_location(models::small_total_error(job->train.batch, job->train.job.workers),
                         settings, "batch");
  const bool is_dynamic = job->train.dynamic_batches;
  print_batch_note(*job, resolved, settings);
  if (auto valid = check_hand_ins(**model, job->train.job.barrier, is_dynamic); !valid)
    return with_location(std::move(valid).error(), settings, "barrier");
  if (auto valid = check_compression(**model, job->train); !valid)
    return with_location(std::move(valid).error(), settings, "compression");
  // If there are few samples, some workers' shares of them are one sample smaller than the batch.
  const std::size_t batch = is_dynamic ? 1 : resolved.options.batch;
  const std::size_t least_batch = std::min<std::size_t>(
      batch, std::max<std::size_t>(1, resolved.train_samples / resolved.options.job.workers));
  auto fit = (*model)->accepts_batch(batch);
  if (fit) fit = (*model)->accepts_batch(least_batch);
  if (!fit) {
    Error error = std::move(fit).error();
    if (is_dynamic) error.message += "; dynamic batches may have 1 sample; valid: --batch 32";
    return with_location(std::move(error), settings, "batch");
  }
  auto device_model = (*model)->put_on_device(job->device, resolved.options.batch);
  if (!device_model) return with_location(std::move(device_model).error(), settings, "device");
  if (!device_model->note.empty() && !job->quiet)
    print_error(location_of(settings, "device") + ": computing on the CPU: " + device_model->note);
  resolved.device = std::move(device_model->device);
  if (device_model->model != nullptr) *model = std::move(device_model->model);
  RecordedRun run{.job = *std::move(job), .resolved = std::move(resolved), .description = *model};
  run.notes = notes_of(**model, run.job.data, data->train);
  run.data_advice = {data->test ? baseline_of(data->train, *data->test) : std::nullopt,
                     odd_labels_hint(run.job.data.data, data->train)};
  PreparedRun ready{std::move(run), *std::move(data), *std::move(model)};
  if (auto valid = set_target_metric(ready); !valid)
    return add_location(std::move(valid).error(), settings);
  if (auto valid = check_selection(ready.job, *ready.model, ready.test()); !valid)
    return add_location(std::move(valid).error(), settings);
  if (init) {
    auto states = initial_states(*init, *ready.model, ready.resolved.options.job);
    if (!states) return with_location(std::move(states).error(), settings, "init");
    ready.resolved.options.resume = *std::move(states);
  }
  if (!ready.job.checkpoint.empty() || !ready.job.resume.empty())
    ready.identity = job_identity_of(ready.resolved, ready.job.data, ready.notes.train_hash);
  if (!ready.job.resume.empty())
    if (auto resumed = resume_job(ready, settings); !resumed) return std::move(resumed).error();
  ready.evaluator = local_evaluator(ready);
  return ready;
}

}  // namespace starling::program
