#include "starling/tools/job/keys.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/alternatives.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/base/straggler.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/tools/job/target.hpp"
#include "starling/tools/job/topology_file.hpp"
#include "starling/tools/registry/device.hpp"

namespace starling::program {
namespace {

using Text = const std::string&;
using In = const KeyInput&;

constexpr std::uint64_t members_max = 65536;

enum class Zero { allowed, refused };

/// Reads a finite number from 0 to `most`; refuses 0 if `zero` says so.
Result<double> read_number(Text text, Zero zero, double most) {
  const auto value = parse_number(text);
  const bool refuses_zero = zero == Zero::refused;
  if (value && *value >= 0 && *value <= most && !(refuses_zero && *value == 0)) return *value;
  return Error{"'" + text + "' must be a number " + (refuses_zero ? "above 0" : ">= 0") +
               (most < std::numeric_limits<double>::max() ? " and <= " + print_number(most) : "")};
}

/// Stores a parsed value in `into`, or returns the error of parsing it.
template <class To, class From>
Result<void> put(To& into, Result<From> parsed) {
  if (!parsed) return std::move(parsed).error();
  into = static_cast<To>(*std::move(parsed));
  return {};
}

Result<void> put_file(std::string& into, Text text) {
  if (text.empty()) return Error{"the name of a file is empty"};
  into = text;
  return {};
}

Result<void> put_name(std::string& into, Text text) {
  if (auto valid = actor::check_job_name(text); !valid) return valid;
  into = text;
  return {};
}

Result<void> put_flag(bool& into, Text text) {
  into = text == "true";
  return {};
}

Result<void> put_data(std::string& into, const Registry& registry, Text text) {
  if (auto valid = check_data(registry, text); !valid) return valid;
  into = text;
  return {};
}

Result<void> put_seconds(Job& job, Text text) {
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  if (!time || *time <= std::chrono::nanoseconds{0})
    return Error{"'" + text +
                 "' must be seconds, or a time like 200ms, 1.5s or 2min, above 0 and at most 285 "
                 "years"};
  job.train.job.time = *time;
  return {};
}

Result<std::chrono::nanoseconds> read_wait_time(Text text) {
  using namespace std::chrono_literals;
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  // Nodes need some seconds to find out whether a node is dead or only slow.
  if (!time || *time < 5s || *time > 24h * 365)
    return Error{"'" + text + "' must be seconds, or a time like 30s or 2min, from 5s to a year"};
  return *time;
}

Result<void> put_holdout(Job& job, Text text) {
  const auto share = parse_number(text);
  if (!share || !(*share > 0 && *share < 1))
    return Error{"'" + text + "' is not a share of the rows; valid: above 0 and below 1, as 0.2"};
  job.data.holdout = *share;
  return {};
}

Result<void> put_seed(Job& job, Text text) {
  const auto seed = parse_count(text, 0, UINT64_MAX);
  if (!seed) return seed.error();
  job.data.seed = job.train.job.seed = *seed;
  return {};
}

Result<void> put_exchange(Job& job, Text text) {
  if (auto known = core::check_exchange(text); !known) return known;
  return put(job.train.job.exchange, with_links(text));
}

Result<void> put_model(Job& job, Text text) {
  if (auto spec = Spec::parse(text); !spec) return std::move(spec).error();
  job.model = text;
  return {};
}

/// Adds the user's actors with this name to those that start with the job.
Result<void> put_actors(Job& job, const Registry& registry, Text name) {
  const auto& all = registry.actors();
  const auto found = std::ranges::find(all, name, &ActorsEntry::name);
  if (found == all.end()) {
    std::string valid;
    for (const ActorsEntry& entry : all) valid += (valid.empty() ? "" : ", ") + entry.name;
    return Error{"'" + name + "': this program has no own actors of this name; valid: " +
                 (valid.empty() ? "none, because it has no own actors" : valid)};
  }
  actor::OnStart& on_start = job.train.job.on_start;
  on_start = [former = std::move(on_start), spawn = found->spawn](const auto& actors,
                                                                  auto& system) {
    if (former) former(actors, system);
    spawn(actors, system);
  };
  return {};
}

Result<void> put_batch(actor::TrainOptions& train, Text text) {
  auto batch = parse_batch(text);
  if (!batch) return std::move(batch).error();
  train.batch = batch->count;
  train.dynamic_batches = batch->is_dynamic;
  return {};
}

Result<void> put_straggler(Job& job, Text text) {
  auto straggler = parse_straggler(text);
  if (!straggler) return std::move(straggler).error();
  job.train.job.stragglers.push_back(*straggler);
  return check_always_available(job.train.job.stragglers);
}

std::vector<Key> data_keys() {
  const std::string group = "Data";
  return {
      {{"data", ValueType::text, "SOURCE",
        "the training data (sources: see below) [digits:n=30000]", group},
       [](In in) { return put_data(in.job.data.data, in.registry, in.text); }},
      {{"test", ValueType::text, "SOURCE", "the test data", group},
       [](In in) { return put_data(in.job.data.test.emplace(), in.registry, in.text); }},
      {{"split", ValueType::count, "ROWS", "or: train on the first ROWS rows, test on the others",
        group},
       [](In in) { return put(in.job.data.split, parse_count(in.text, 1, UINT32_MAX)); }},
      {{"holdout", ValueType::number, "SHARE",
        "or: test on this share of the rows, drawn by seed [0.2]", group},
       [](In in) { return put_holdout(in.job, in.text); }},
      {{"scale", ValueType::text, "HOW",
        "scale features, and the targets of a regression: none | standard (mean 0, deviation 1) | "
        "minmax (0 to 1), computed over the training part [standard for csv: and libsvm:, and for "
        "npy: and npz: unless mapped, or all between 0 and 1; none for other data]",
        group},
       [](In in) { return put(in.job.data.scale.emplace(), models::parse_scale(in.text)); }},
      {{"seed", ValueType::count, "N", "decides all random draws [1]", group},
       [](In in) { return put_seed(in.job, in.text); }},
  };
}

std::vector<Key> model_keys() {
  const std::string group = "Learning";
  return {
      {{"model", ValueType::text, "MODEL",
        "the model to train [mlp:784-128-10 for digits]; see below", group},
       [](In in) { return put_model(in.job, in.text); }},
      {{"dtype", ValueType::text, "TYPE", "float32 or float64 [float32]", group},
       [](In in) { return put(in.job.element_type, parse_element_type(in.text)); }},
      {{"device", ValueType::text, "DEVICE", device_help, group},
       [](In in) { return put(in.job.device, models::parse_device(in.text)); }},
      {{"optimizer", ValueType::text, "OPT",
        examples_of<models::Optimizer>() + " [adam:lr=0.02 for linear models, else adam:lr=0.005]",
        group},
       [](In in) { return put(in.job.train.optimizer, models::parse_optimizer(in.text)); }},
      {{"l2", ValueType::number, "X",
        "weight decay [1 / rows for linear models of classes, else 0]", group},
       [](In in) { return put(in.job.train.l2, read_number(in.text, Zero::allowed, 1e6)); }},
      {{"clip", ValueType::text, "CLIP",
        "bounds gradients: " + examples_of<models::Clip>() + " [none]", group},
       [](In in) { return put(in.job.train.clip, models::parse_clip(in.text)); }},
      {{"compression", ValueType::text, "RULE",
        "what workers send of a gradient; the rest is added to the next: " +
            examples_of<models::Compression>() + " [none]",
        group},
       [](In in) { return put(in.job.train.compression, models::parse_compression(in.text)); }},
      {{"schedule", ValueType::text, "S",
        "learning rate by samples seen: " + examples_of<models::Schedule>() +
            " [constant; cosine over the whole job for a linear model with the default optimizer]",
        group},
       [](In in) { return put(in.job.train.schedule, models::parse_schedule(in.text)); }},
      {{"init", ValueType::text, "FILE",
        "begin with the parameters and the scaling of a saved model [parameters drawn by seed]",
        group},
       [](In in) { return put_file(in.job.init, in.text); }},
      {{"batch", ValueType::count_or_text, "N",
        "samples of one step of one worker; or dynamic:total=N, samples of one step of all "
        "workers, "
        "divided by their speeds [32]",
        group},
       [](In in) { return put_batch(in.job.train, in.text); }},
  };
}

std::vector<Key> limit_keys() {
  const std::string group =
      "How long (the first limit ends the job) [10 epochs, at least 750 steps, 1500 for linear "
      "models]";
  return {
      {{"epochs", ValueType::number, "X", "passes over the training data", group},
       [](In in) { return put(in.job.epochs, read_number(in.text, Zero::refused, 1e9)); }},
      {{"steps", ValueType::count, "N", "steps of each worker", group},
       [](In in) {
         return put(in.job.train.job.steps, parse_count(in.text, 1, 1'000'000'000'000));
       }},
      {{"seconds", ValueType::duration, "T", "time in seconds, or with its unit: 200ms, 2min",
        group},
       [](In in) { return put_seconds(in.job, in.text); }},
      {{"until", ValueType::text, "GOAL",
        "a metric on test data: accuracy=0.95, loss=0.1; or accuracy>=0.95, mse<=2; also auc, "
        "r2, mae, rmse, precision, recall (means over classes), recall:LABEL",
        group},
       [](In in) { return put(in.job.train.job.until, parse_target(in.text)); }},
      {{"patience", ValueType::count, "N",
        "end the job after so many evaluations without a better test loss, 0: never [0]", group},
       [](In in) { return put(in.job.patience, parse_count(in.text, 0, 1'000'000'000)); }},
  };
}

std::vector<Key> worker_keys() {
  const std::string group = "Workers and barriers";
  return {
      {{"workers", ValueType::count, "N", "the number of workers [4]", group},
       [](In in) { return put(in.job.train.job.workers, parse_count(in.text, 1, members_max)); }},
      {{"mode", ValueType::text, "MODE",
        "central | hybrid | peer: who holds the model and who knows the steps [peer]", group},
       [](In in) { return put(in.job.train.job.mode, core::parse_mode(in.text)); }},
      {{"exchange", ValueType::text, "EXCHANGE",
        "owners | elastic:every=N,pull=P; in peer mode also broadcast | "
        "gossip[:ring|:random][,lag=N] | "
        "allreduce[:ring|:tree|...|:overlap|:buckets=N] | average:every=N | "
        "leader:every=N,group=N,pull=P: "
        "how updates reach others [owners]",
        group},
       [](In in) { return put_exchange(in.job, in.text); }},
      {{"cache", ValueType::flag, "",
        "in central mode: a worker reads again only what is too old for the barrier, such as "
        "ssp:s=4",
        group},
       [](In in) { return put_flag(in.job.train.job.cache, in.text); }},
      {{"shards", ValueType::count, "N",
        "servers, in modes that have any [one for each 4 workers, at most 8]", group},
       [](In in) { return put(in.job.train.job.shards, parse_count(in.text, 1, members_max)); }},
      {{"name", ValueType::text, "NAME",
        "on a cluster: what `status`, `stop` and `attach` call the job: letters, digits, - _ . "
        "[MODEL-DATA-N]",
        group},
       [](In in) { return put_name(in.job.name, in.text); }},
      {{"copies", ValueType::count, "N", "on a cluster: nodes that hold each part of the model [2]",
        group},
       [](In in) { return put(in.job.train.job.replication_factor, parse_count(in.text, 1, 16)); }},
      {{"wait-for-nodes", ValueType::duration, "T",
        "on a cluster: how long the job waits for nodes that it cannot go on without, seconds or "
        "with a unit [30s]",
        group},
       [](In in) { return put(in.job.train.job.wait_for_nodes, read_wait_time(in.text)); }},
      {{"barrier", ValueType::text, "BARRIER",
        "bsp | ssp:s=4 | asp | pbsp:beta=2 | pssp:s=4,beta=2[,draw=availability|speed] | ... "
        "[pssp:s=4,beta=2; with fewer than 3 workers, beta = workers - 1]; see below",
        group},
       [](In in) {
         return put(in.job.train.job.barrier, barrier::parse(in.text, in.registry.rules()));
       }},
      {{"recheck", ValueType::text, "HOW",
        "when a waiting worker draws again: arrival | notify | interval:5ms | notify+interval:5ms "
        "[arrival in central mode, else notify+interval:auto]",
        group},
       [](In in) { return put(in.job.train.job.recheck, barrier::parse_recheck(in.text)); }},
      {{"delay", ValueType::text, "LAW",
        "extra time of each step: none | const:20ms | exp:20ms | uniform:20ms | gamma:... | "
        "lognormal:... | pareto:... | trace:FILE [none]",
        group},
       [](In in) { return put(in.job.train.job.delay, parse_distribution(in.text)); }},
      {{"straggler", ValueType::texts, "WHO",
        "slow workers: 1:4x (one, 4 times slower) | 25%:4x (a quarter); repeatable", group},
       [](In in) { return put_straggler(in.job, in.text); }},
      {{"threads", ValueType::count, "N", "compute threads [one for each processor]", group},
       [](In in) { return put(in.job.train.job.compute_threads, parse_count(in.text, 1, 4096)); }},
      {{"actors", ValueType::texts, "NAME",
        "own actors of this program that start with the job; repeatable [none]", group},
       [](In in) { return put_actors(in.job, in.registry, in.text); }},
      {{"attempts", ValueType::count, "N", "tries of a step that throws [3]", group},
       [](In in) { return put(in.job.train.job.attempts, parse_count(in.text, 1, 1'000'000)); }},
  };
}

std::vector<Key> output_keys() {
  const std::string group = "What comes out";
  return {
      {{"save", ValueType::text, "FILE", "the model, in the safetensors format", group},
       [](In in) { return put_file(in.job.save, in.text); }},
      {{"keep", ValueType::text, "WHICH",
        "the model that the job leaves: best (smallest test loss) | last [best with patience, else "
        "last]",
        group},
       [](In in) { return put(in.job.keep.emplace(), parse_keep(in.text)); }},
      {{"checkpoint", ValueType::text, "FILE",
        "the whole state, from which a job can resume; written at the end too", group},
       [](In in) { return put_file(in.job.checkpoint, in.text); }},
      {{"checkpoint-every", ValueType::count, "STEPS",
        "also write the checkpoint every so many steps", group},
       [](In in) {
         return put(in.job.train.job.checkpoint_every, parse_count(in.text, 1, 1'000'000'000'000));
       }},
      {{"resume", ValueType::text, "FILE",
        "resume from a checkpoint of the same job, perhaps with other workers, mode or barrier",
        group},
       [](In in) { return put_file(in.job.resume, in.text); }},
      {{"trust-file", ValueType::flag, "",
        "--resume and --init take a file without a checksum, too", group},
       [](In in) { return put_flag(in.job.accepts_missing_checksum, in.text); }},
      {{"eval-every", ValueType::count, "STEPS",
        "steps between two tests, 0: only at the end [those of an epoch; without seconds and "
        "until, at least a hundredth of the job's steps]",
        group},
       [](In in) {
         return put(in.job.evaluate_every, parse_count(in.text, 0, 1'000'000'000'000));
       }},
      {{"metrics", ValueType::text, "FILE",
        "figures while training, one JSON object a line; may be a pipe; --resume appends", group},
       [](In in) { return put_file(in.job.metrics, in.text); }},
      {{"report", ValueType::text, "FILE",
        "curves, settings and figures as one HTML page, once the job has ended", group},
       [](In in) { return put_file(in.job.report, in.text); }},
      {{"trace", ValueType::text, "FILE",
        "what each worker does when, for Perfetto or chrome://tracing", group},
       [](In in) { return put_file(in.job.trace, in.text); }},
      {{"json", ValueType::flag, "", "the summary as one JSON object", group},
       [](In in) { return put_flag(in.job.json, in.text); }},
      {{"quiet", ValueType::flag, "",
        "no progress, and no notes on settings without effect; errors and other warnings remain",
        group},
       [](In in) { return put_flag(in.job.quiet, in.text); }},
  };
}

}  // namespace

const std::vector<Key>& job_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys;
    for (auto part : {data_keys(), model_keys(), limit_keys(), worker_keys(), output_keys()})
      keys.insert(keys.end(), part.begin(), part.end());
    return keys;
  }();
  return all;
}

const Key* find_key(std::string_view name) {
  const auto at = std::ranges::find(job_keys(), name, &Key::name);
  return at == job_keys().end() ? nullptr : &*at;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const Key& key : job_keys()) names.push_back(key.name);
  return names;
}

}  // namespace starling::program
