#include "starling/tools/bench/bench_arguments.hpp"

#include <utility>

#include "starling/actor/fabric/provider.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/bench/bench_commands.hpp"
#include "starling/tools/program/byte_amount.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t batch_max = 65536;
constexpr std::uint64_t repeats_max = 1000;
constexpr std::uint64_t steps_max = 1'000'000'000;

const std::vector<KeyDescription>& kernels_keys() {
  static const std::vector<KeyDescription> keys{
      {"batch", ValueType::count, "N", "rows of each product, images of each convolution [64]",
       "Options"},
      {"repeats", ValueType::count, "N", "measurements of each; the median is shown [5]",
       "Options"},
      {"json", ValueType::flag, "", "one JSON object", "Options"}};
  return keys;
}

const std::vector<KeyDescription>& train_keys() {
  static const std::vector<KeyDescription> keys{
      {"model", ValueType::text, "MODEL", "the model to train [one that suits the data]",
       "Options"},
      {"data", ValueType::text, "SOURCE", "the data to train on [digits:n=8000]", "Options"},
      {"optimizer", ValueType::text, "OPTIMIZER", "as for `train` [sgd:lr=0.01]", "Options"},
      {"batch", ValueType::count, "N", "samples of a step [64]", "Options"},
      {"steps", ValueType::count, "N", "steps of each repeat, instead of --seconds", "Options"},
      {"seconds", ValueType::duration, "T",
       "time of each repeat, in seconds, or with its unit: 200ms, 2min [2]", "Options"},
      {"repeats", ValueType::count, "N", "measurements; the median is shown [5]", "Options"},
      {"seed", ValueType::count, "N", "the seed of the data, the model and the batches [1]",
       "Options"},
      {"json", ValueType::flag, "", "one JSON object", "Options"}};
  return keys;
}

const std::vector<KeyDescription>& collectives_keys() {
  static const std::vector<KeyDescription> keys{
      {"members", ValueType::count, "N", "processes, 2 to 64 [4]", "Options"},
      {"bytes", ValueType::texts, "AMOUNT",
       "the length of the vectors, at most 1GiB; repeatable [1kB, 10kB, 100kB, 1MB, 10MB, 100MB]",
       "Options"},
      {"collective", ValueType::texts, "ALGORITHM",
       "ring | tree | double-tree | doubling | halving | parts | groups:4 | bcube:k=2; repeatable "
       "[the first six]",
       "Options"},
      {"repeats", ValueType::count, "N", "measurements; the median is shown [5]", "Options"},
      {"fabric", ValueType::text, "PROVIDER", "one-sided tensors: shm, tcp, verbs, none [none]",
       "Options"},
      {"json", ValueType::flag, "", "one JSON object", "Options"}};
  return keys;
}

/// Reads the time of each repeat. Refuses --seconds beside --steps.
Result<void> put_time(BenchTrainOptions& options, const Settings& settings) {
  const std::string text = text_of(settings, "seconds");
  if (text.empty()) return {};
  const auto time = parse_duration(parse_number(text) ? text + "s" : text);
  if (!time || *time <= std::chrono::nanoseconds{0} || *time > std::chrono::hours{24})
    return Error{"--seconds: '" + text +
                 "' must be seconds, or a time like 200ms, 1.5s or 2min, above 0 and up to 24h"};
  if (options.steps) return Error{"--seconds: excludes --steps; valid: one of them"};
  options.time = *time;
  return {};
}

}  // namespace

BenchArguments::BenchArguments(CLI::App& program, const std::string& train_footer)
    : bench_(program, "bench", "measure how fast this machine computes"),
      kernels_(bench_.app(), "kernels",
               "the products and convolutions of known nets, by each library", kernels_keys()),
      train_(bench_.app(), "train", "whole training steps of a model, on one thread", train_keys()),
      collectives_(bench_.app(), "collectives",
                   "all-reduces among processes on this machine, by each algorithm",
                   collectives_keys()) {
  bench_.allow_one_subcommand();
  kernels_.command().set_footer(
      "\nGFLOP per second of processor time on one thread, medians. The libraries take turns, so "
      "that the\nload of other programs slows both alike.");
  collectives_.command().set_footer(
      "\nEach member is a process; frames travel over TCP on the loopback, without encryption, as "
      "between\nnodes. In each repeat, all sizes and algorithms take their turn. Exit codes: 0 "
      "done, "
      "1 a process\nfailed or a sum is wrong, 2 bad input, 130 interrupted.");
  train_.command().set_footer(
      train_footer +
      "\nOne thread draws batches, computes gradients and applies them, without engine or network. "
      "Steps/s\nare of wall time, and of processor time, which other programs disturb less. Memory "
      "is the\nlargest resident size of the process, data included.\nExit codes: 0 done, 1 the "
      "loss "
      "is not finite, 2 bad input, 130 interrupted.");
}

Result<int> BenchArguments::run(const Registry& registry) const {
  if (!bench_.has_chosen_subcommand())
    return bench_.missing_command_error("what to measure is missing",
                                        ", as in " + bench_.call() + " train",
                                        "unknown command 'bench {}'");
  for (const Command* command :
       {&bench_, &kernels_.command(), &train_.command(), &collectives_.command()})
    if (command->is_chosen())
      if (auto known = command->refuse_extras(); !known) return std::move(known).error();
  if (collectives_.command().is_chosen()) return run_collectives();
  return kernels_.command().is_chosen() ? run_kernels() : run_train(registry);
}

Result<int> BenchArguments::run_kernels() const {
  const auto settings = kernels_.settings();
  if (!settings) return settings.error();
  BenchKernelsOptions options;
  options.json = !text_of(*settings, "json").empty();
  if (auto put = put_count(options.batch, *settings, "batch", 1, batch_max); !put)
    return std::move(put).error();
  if (auto put = put_count(options.repeats, *settings, "repeats", 1, repeats_max); !put)
    return std::move(put).error();
  return bench_kernels_command(options);
}

Result<int> BenchArguments::run_collectives() const {
  const auto settings = collectives_.settings();
  if (!settings) return settings.error();
  BenchCollectivesOptions options;
  options.json = !text_of(*settings, "json").empty();
  if (auto put = put_count(options.members, *settings, "members", 2, 64); !put)
    return std::move(put).error();
  if (auto put = put_count(options.repeats, *settings, "repeats", 1, repeats_max); !put)
    return std::move(put).error();
  for (const Setting& setting : *settings) {
    if (setting.key == "collective") options.algorithms.push_back(setting.text);
    if (setting.key == "fabric" && setting.text != "none") {
      const auto provider = fabric::parse_provider(setting.text);
      if (!provider)
        return Error{"--fabric: unknown provider '" + setting.text +
                     "'; valid: shm, tcp, verbs, none"};
      if (auto usable = fabric::check(*provider); !usable)
        return std::move(usable).error().within("--fabric");
      options.fabric = *provider;
    }
    if (setting.key != "bytes") continue;
    constexpr std::uint64_t bytes_max = std::uint64_t{1} << 30U;
    auto bytes = parse_bytes(setting.text, "an amount with its unit, like 100kB");
    if (!bytes) return std::move(bytes).error().within("--bytes");
    if (*bytes < sizeof(float) || *bytes > bytes_max || *bytes % sizeof(float) != 0)
      return Error{"--bytes: " + setting.text + "; valid: 4 bytes to 1GiB, in multiples of 4"};
    options.bytes.push_back(*bytes);
  }
  if (options.bytes.empty())
    options.bytes = {1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
  if (options.algorithms.empty())
    options.algorithms = {"ring", "tree", "double-tree", "doubling", "halving", "parts"};
  return bench_collectives_command(options);
}

Result<int> BenchArguments::run_train(const Registry& registry) const {
  const auto settings = train_.settings();
  if (!settings) return settings.error();
  BenchTrainOptions options;
  options.json = !text_of(*settings, "json").empty();
  options.model = text_of(*settings, "model");
  if (const auto data = text_of(*settings, "data"); !data.empty()) options.data = data;
  if (const auto text = text_of(*settings, "optimizer"); !text.empty()) {
    const auto optimizer = models::parse_optimizer(text);
    if (!optimizer) return Error{"--optimizer: " + optimizer.error().message};
    options.optimizer = *optimizer;
  }
  std::uint64_t steps = 0;
  if (auto put = put_count(options.batch, *settings, "batch", 1, batch_max); !put)
    return std::move(put).error();
  if (auto put = put_count(options.repeats, *settings, "repeats", 1, repeats_max); !put)
    return std::move(put).error();
  if (auto put = put_count(options.seed, *settings, "seed", 0, UINT64_MAX); !put)
    return std::move(put).error();
  if (auto put = put_count(steps, *settings, "steps", 1, steps_max); !put)
    return std::move(put).error();
  if (steps > 0) options.steps = steps;
  if (auto put = put_time(options, *settings); !put) return std::move(put).error();
  return bench_train_command(registry, options);
}

}  // namespace starling::program
