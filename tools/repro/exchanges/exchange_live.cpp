#include <algorithm>
#include <utility>

#include "starling/base/distributions/distribution.hpp"
#include "starling/base/random.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/repro/exchanges/exchange_study.hpp"
#include "starling/tools/sim/run_display.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

constexpr const char* live_delay = "exp:20ms";

Result<actor::Outcome> run_live(const PreparedRun& ready, const AnyData* test) {
  auto outcome = ready.model->train(ready.data.train, test, ready.resolved.options);
  if (outcome && outcome->end == actor::Outcome::End::failed) return Error{outcome->error};
  return outcome;
}

/// Runs rounds of 4 workers whose step times are exponentially distributed. The model is small, so
/// that a step takes hardly longer than its delay.
Result<LiveRounds> run_rounds(const ExchangeStudy& study, const Registry& registry,
                              const std::string& exchange) {
  const ExchangeStudyOptions& options = study.options;
  const auto ready = prepare(registry,
                             settings_of_flags({{"data", "linear:d=2,n=500"},
                                                {"model", "linear"},
                                                {"optimizer", "sgd:lr=0.01"},
                                                {"batch", "4"},
                                                {"mode", "peer"},
                                                {"exchange", exchange},
                                                {"workers", "4"},
                                                {"delay", live_delay},
                                                {"seconds", print_duration(options.live)},
                                                {"seed", std::to_string(options.seed)},
                                                {"quiet", "true"}}),
                             "");
  if (!ready) return ready.error();
  auto outcome = run_live(*ready, nullptr);
  if (!outcome) return std::move(outcome).error();
  const actor::Progress& last = outcome->last;
  // A live worker draws its delays from the random stream of its id and its incarnation, which is
  // 0. A simulated step also takes the mean time that a live step took beyond its delay.
  std::vector<Random> randoms;
  for (std::size_t worker = 0; worker < 4; ++worker)
    randoms.push_back(Random::stream(options.seed, worker, 0));
  const auto delay = parse_distribution(live_delay).value();
  const auto step = simulate_rounds(exchange, last.updates / 4, core::Time{0},
                                    [&](core::MemberId worker, core::Step) {
                                      return delay.draw(randoms[worker]) + last.mean_work_time;
                                    });
  if (!step) return step.error();
  return LiveRounds{
      .exchange = exchange,
      .steps_per_second = static_cast<double>(last.updates) / 4 / in_seconds(last.elapsed),
      .simulated_steps_per_second = 1 / *step,
      .waiting_share = last.waiting_share};
}

/// Trains a perceptron on generated digits, once with each seed of the study. Shows `done` as the
/// progress: the share of the exchanges that have been trained before this one.
Result<LearnedExchange> learn(const ExchangeStudy& study, const Registry& registry,
                              LearnedExchange run, RunDisplay& display, double done) {
  const ExchangeStudyOptions& options = study.options;
  const std::uint64_t epochs = options.quick ? 2 : 30;
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    display.show(done);
    const auto ready =
        prepare(registry,
                settings_of_flags({{"data", "digits:n=6000"},
                                   {"model", "mlp:784-32-10"},
                                   {"optimizer", "sgd:lr=0.2"},
                                   {"schedule", "cosine:samples=" + std::to_string(epochs * 4800)},
                                   {"batch", "16"},
                                   {"epochs", std::to_string(epochs)},
                                   {"mode", "peer"},
                                   {"exchange", run.exchange},
                                   {"barrier", run.barrier},
                                   {"workers", "8"},
                                   {"seed", std::to_string(options.seed + i)},
                                   {"quiet", "true"}}),
                "");
    if (!ready) return ready.error();
    auto outcome = run_live(*ready, ready->test());
    if (!outcome) return std::move(outcome).error();
    const auto accuracy =
        std::ranges::find(outcome->last.test, std::string{"accuracy"}, &models::Metric::name);
    if (accuracy == outcome->last.test.end()) return Error{"the model reports no accuracy"};
    run.accuracies.push_back(accuracy->value);
  }
  return run;
}

}  // namespace

Result<void> run_exchanges_live(ExchangeStudy& study, const Registry& registry) {
  constexpr const char* sampled = "pssp:s=4,beta=2";
  const std::vector<LearnedExchange> runs{{"allreduce", "bsp"},
                                          {"allreduce:overlap", "bsp"},
                                          {"average:every=8", "bsp"},
                                          {"broadcast", sampled},
                                          {"owners", sampled},
                                          {"gossip", "asp"},
                                          {"gossip", sampled},
                                          {"gossip:lag=1", sampled},
                                          {"elastic:every=8,pull=0.1", sampled},
                                          {"leader:every=8,group=4,pull=0.3", sampled}};
  RunDisplay display{study.options.quiet, "training live"};
  for (const char* exchange : {"allreduce", "allreduce:overlap"}) {
    display.show(0);
    auto rounds = run_rounds(study, registry, exchange);
    if (!rounds) return std::move(rounds).error().within(exchange);
    study.rounds.push_back(*std::move(rounds));
  }
  for (const LearnedExchange& planned : runs) {
    const double done =
        static_cast<double>(study.learning.size()) / static_cast<double>(runs.size());
    auto run = learn(study, registry, planned, display, done);
    if (!run) return std::move(run).error().within(planned.exchange);
    study.learning.push_back(*std::move(run));
  }
  return {};
}

Result<ExchangeStudy> make_exchange_study(const Registry& registry,
                                          const ExchangeStudyOptions& options) {
  ExchangeStudy study{.options = options};
  compute_costs(study);
  if (auto simulated = simulate_exchanges(study); !simulated) return std::move(simulated).error();
  if (auto ran = run_exchanges_live(study, registry); !ran) return std::move(ran).error();
  return study;
}

}  // namespace starling::program
