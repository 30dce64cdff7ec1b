#include "starling/tools/bench/bench_arguments.hpp"

#include "starling/base/text.hpp"
#include "starling/tools/bench/bench_commands.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t batch_max = 65536;
constexpr std::uint64_t repeats_max = 1000;
constexpr std::uint64_t steps_max = 1'000'000'000;

const std::vector<KeyForm>& kernels_keys() {
  static const std::vector<KeyForm> keys{
      {"batch", KeyKind::count, "N", "rows of each product, images of each convolution [64]",
       "Options"},
      {"repeats", KeyKind::count, "N", "measurements of each, of which the median counts [5]",
       "Options"},
      {"json", KeyKind::flag, "", "one JSON object", "Options"}};
  return keys;
}

const std::vector<KeyForm>& train_keys() {
  static const std::vector<KeyForm> keys{
      {"model", KeyKind::text, "MODEL", "what is learned [what suits the data]", "Options"},
      {"data", KeyKind::text, "SOURCE", "what is trained on [digits:n=8000]", "Options"},
      {"optimizer", KeyKind::text, "OPTIMIZER", "as for `train` [sgd:lr=0.01]", "Options"},
      {"batch", KeyKind::count, "N", "samples of a step [64]", "Options"},
      {"steps", KeyKind::count, "N", "steps of each repeat, in place of a time", "Options"},
      {"seconds", KeyKind::duration, "T",
       "time of each repeat, in seconds, or with its unit: 200ms, 2min [2]", "Options"},
      {"repeats", KeyKind::count, "N", "measurements, of which the median counts [5]", "Options"},
      {"seed", KeyKind::count, "N", "of the data, the model and the batches [1]", "Options"},
      {"json", KeyKind::flag, "", "one JSON object", "Options"}};
  return keys;
}

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
      train_(bench_.app(), "train", "whole training steps of a model, on one thread",
             train_keys()) {
  bench_.app().require_subcommand(0, 1);
  kernels_.command().app().footer(
      "\nGFLOP per second of processor time on one thread, medians. The libraries take turns, so "
      "that "
      "what\nelse the machine does hits both.");
  train_.command().app().footer(
      train_footer +
      "\nOne thread draws batches, computes gradients and applies them, without engine or network. "
      "Steps/s\nare of wall time, and of processor time, which others on the machine disturb less. "
      "Memory is the\nmost that the process had resident, data included.\nExit codes: 0 done, 1 "
      "the loss is no number, 2 bad input, 130 interrupted.");
}

Result<int> BenchArguments::run(const Registry& registry) const {
  if (bench_.app().get_subcommands().empty())
    return bench_.without_command("what to measure is missing",
                                  ", as in " + bench_.call() + " train",
                                  "'{}' is nothing that can be measured");
  for (const Command* command : {&bench_, &kernels_.command(), &train_.command()})
    if (command->is_chosen())
      if (auto known = command->refuse_extras(); !known) return std::move(known).error();
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
