/// Tests that exact sampling, plain sampling and the barrier cores of live jobs give the same
/// distributions.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <variant>

#include "starling/base/to_duration.hpp"
#include "starling/engine/core/step_times.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/core/worker/sample_gate.hpp"
#include "tests/engine/core/initial_workers.hpp"
#include "tests/engine/sim/steps_agree.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

class ExactAndPlain : public testing::TestWithParam<Comparison> {};

TEST_P(ExactAndPlain, HaveTheSameDistributions) { expect_exact_equals_plain(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Arrival, ExactAndPlain,
    testing::Values(Comparison{"pbsp:beta=10", "arrival", 50, 5s, 60},
                    Comparison{"pbsp:beta=1", "arrival", 50, 5s, 60},
                    Comparison{"pbsp:beta=45", "arrival", 50, 5s, 30},
                    Comparison{"pssp:s=4,beta=10", "arrival", 50, 5s, 60},
                    Comparison{"pssp:s=1,beta=10", "arrival", 50, 5s, 60, true},
                    Comparison{"pbsp:beta=10", "arrival", 50, 5s, 60, true},
                    Comparison{"pbsp:beta=10", "arrival", 200, 2s, 20},
                    Comparison{"pssp:s=4,beta=10", "arrival", 200, 3s, 20, true},
                    Comparison{"pbsp:beta=10", "arrival", 1000, 500ms, 12},
                    Comparison{"pssp:s=4,beta=10", "arrival", 1000, 1500ms, 12}));

INSTANTIATE_TEST_SUITE_P(
    OtherPolicies, ExactAndPlain,
    testing::Values(Comparison{"pbsp:beta=10", "notify", 50, 5s, 60},
                    Comparison{"pssp:s=4,beta=10", "notify", 50, 5s, 60, true},
                    Comparison{"pbsp:beta=2", "notify", 50, 5s, 60, true},
                    Comparison{"pbsp:beta=10", "interval:20ms", 50, 5s, 60},
                    Comparison{"pssp:s=4,beta=10", "interval:20ms", 50, 5s, 60, true},
                    Comparison{"pbsp:beta=10", "notify+interval:auto", 50, 5s, 60},
                    Comparison{"pbsp:beta=5", "arrival+interval:1ms", 50, 3s, 60, true}));

/// Runs workers under the barrier cores of live jobs. Step times are drawn as in the simulator, and
/// messages take no time.
class Driver {
 public:
  virtual ~Driver() = default;

  StepResult run() {
    for (MemberId worker = 0; worker < options_.workers; ++worker) begin(worker);
    while (std::get<Time>(*queue_.begin()) <= options_.horizon) {
      const auto [at, order, worker, is_timer] = *queue_.begin();
      queue_.erase(queue_.begin());
      now_ = at;
      if (is_timer) {
        on_timer(worker);
      } else {
        ++steps_[worker];
        on_step(worker);
      }
    }
    return {.steps = steps_,
            .updates = std::accumulate(steps_.begin(), steps_.end(), std::uint64_t{0}),
            .draws = draws()};
  }

 protected:
  explicit Driver(const StepOptions& options)
      : options_(options),
        steps_(options.workers),
        random_(Random::stream(options.seed, 3)),
        step_times_(options.workers) {}

  virtual void on_step(MemberId worker) = 0;
  virtual void on_timer(MemberId worker) = 0;
  [[nodiscard]] virtual std::uint64_t draws() const = 0;

  void begin(MemberId worker) {
    const double factor = options_.slowness.empty() ? 1 : options_.slowness[worker];
    const Time takes =
        to_duration(static_cast<double>(options_.step_time.draw(random_).count()) * factor);
    step_times_[worker].add(takes);
    queue_.emplace(now_ + takes, ++order_, worker, false);
  }
  void set_timer(MemberId worker, Time at) { queue_.emplace(at, ++order_, worker, true); }
  [[nodiscard]] core::Context context(core::Effects& effects) { return {now_, random_, effects}; }

  StepOptions options_;
  std::vector<Step> steps_;
  Random random_;
  std::vector<core::StepTimes> step_times_;

 private:
  Time now_{};
  int order_ = 0;
  std::set<std::tuple<Time, int, MemberId, bool>> queue_;
};

/// A core::Coordinator keeps the steps of all workers.
class CoordinatorDriver : public Driver {
 public:
  explicit CoordinatorDriver(const StepOptions& options)
      : Driver(options), coordinator_({options.barrier, options.recheck}) {
    core::add_initial_workers(coordinator_, std::vector<Step>(options.workers));
  }

 private:
  void on_step(MemberId worker) override {
    core::Effects effects;
    coordinator_.on(context(effects), core::Arrived{worker, steps_[worker]});
    execute(effects);
  }
  void on_timer(MemberId) override {
    core::Effects effects;
    coordinator_.on_timer(context(effects));
    execute(effects);
  }
  [[nodiscard]] std::uint64_t draws() const override { return coordinator_.draws(); }

  void execute(const core::Effects& effects) {
    for (const core::Effect& effect : effects) {
      if (const auto* timer = std::get_if<core::SetTimer>(&effect))
        set_timer(0, timer->at);
      else
        begin(std::get<core::ToMember>(std::get<core::Send>(effect).to).id);
    }
  }

  core::Coordinator coordinator_;
};

/// Each worker has a core::SampleGate that asks the others; answers arrive in a random order.
class SampleGateDriver : public Driver {
 public:
  explicit SampleGateDriver(const StepOptions& options)
      : Driver(options), notify_requests_(options.workers) {
    std::vector<MemberId> everyone(options.workers);
    std::iota(everyone.begin(), everyone.end(), 0U);
    const auto members = std::make_shared<const std::vector<MemberId>>(everyone);
    for (const MemberId worker : everyone)
      gates_.emplace_back(options.barrier, options.recheck, worker, members);
  }

 private:
  void on_step(MemberId worker) override {
    std::vector<core::NotifyRequest> due;
    std::erase_if(notify_requests_[worker], [&](const auto& entry) {
      const bool caught_up = steps_[worker] >= entry.second.floor;
      if (caught_up) due.push_back(entry.second);
      return caught_up;
    });
    for (const core::NotifyRequest& request : due)
      deliver(request.from, [&](core::SampleGate& gate, const core::Context& at) {
        return gate.on(at, core::Notice{worker, request.draw});
      });
    deliver(worker, [&](core::SampleGate& gate, const core::Context& at) {
      return gate.begin(at, steps_[worker], step_times_[worker].recheck_interval());
    });
  }
  void on_timer(MemberId worker) override {
    deliver(worker,
            [](core::SampleGate& gate, const core::Context& at) { return gate.on_timer(at); });
  }
  [[nodiscard]] std::uint64_t draws() const override {
    std::uint64_t sum = 0;
    for (const core::SampleGate& gate : gates_) sum += gate.counts().draws;
    return sum;
  }

  /// A call of a function of SampleGate. Returns true if the worker may pass.
  using GateCall = std::function<bool(core::SampleGate&, const core::Context&)>;

  /// Calls the worker's gate and applies its effects. Sends its queries to the others, whose
  /// answers it delivers at once.
  void deliver(MemberId worker, const GateCall& call) {
    core::Effects effects;
    if (call(gates_[worker], context(effects))) return begin(worker);
    std::vector<std::pair<MemberId, core::StepQuery>> asked;
    for (const core::Effect& effect : effects) {
      if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
        set_timer(worker, timer->at);
        continue;
      }
      const auto& send = std::get<core::Send>(effect);
      const MemberId other = std::get<core::ToMember>(send.to).id;
      if (const auto* query = std::get_if<core::StepQuery>(&send.message))
        asked.emplace_back(other, *query);
      else
        notify_requests_[other].insert_or_assign(worker,
                                                 std::get<core::NotifyRequest>(send.message));
    }
    for (std::size_t remaining = asked.size(); remaining > 0; --remaining) {
      std::swap(asked[remaining - 1], asked[random_.below(remaining)]);
      const core::StepAnswer answer{asked[remaining - 1].first, asked[remaining - 1].second.draw,
                                    steps_[asked[remaining - 1].first]};
      deliver(worker,
              [&](core::SampleGate& gate, const core::Context& at) { return gate.on(at, answer); });
    }
  }

  std::vector<core::SampleGate> gates_;
  std::vector<std::map<MemberId, core::NotifyRequest>> notify_requests_;
};

/// Compares the distributions of the simulator with those of a Driver.
template <class Live>
void expect_simulated_distributions(const Comparison& comparison) {
  auto options = options_of(comparison);
  const auto seeds = seeds_of(comparison);
  const auto simulated = runs(options, seeds);
  std::vector<StepResult> live;
  options.seed += second_sample_seeds;
  for (; live.size() < seeds; ++options.seed) live.push_back(Live{options}.run());
  const auto draws = [](const StepResult& r) { return r.draws; };
  EXPECT_GT(kolmogorov_smirnov(figures(simulated, mean_step), figures(live, mean_step)), 0.001);
  EXPECT_GT(kolmogorov_smirnov(figures(simulated, draws), figures(live, draws)), 0.001);
}

class Coordinator : public testing::TestWithParam<Comparison> {};

TEST_P(Coordinator, HasTheSimulatedDistribution) {
  expect_simulated_distributions<CoordinatorDriver>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Policies, Coordinator,
    testing::Values(Comparison{"bsp", "arrival", 20, 5s, 60, true},
                    Comparison{"ssp:s=2", "arrival", 20, 5s, 60, true},
                    Comparison{"pbsp:beta=3", "arrival", 20, 5s, 60, true},
                    Comparison{"pssp:s=2,beta=3", "arrival", 20, 5s, 60, true},
                    Comparison{"pbsp:beta=3", "interval:30ms", 20, 5s, 60, true},
                    Comparison{"pbsp:beta=8", "arrival+interval:4ms", 20, 5s, 60, true}));

class SampleGate : public testing::TestWithParam<Comparison> {};

TEST_P(SampleGate, HasTheSimulatedDistribution) {
  expect_simulated_distributions<SampleGateDriver>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Policies, SampleGate,
    testing::Values(Comparison{"pbsp:beta=3", "notify", 20, 5s, 60, true},
                    Comparison{"pssp:s=2,beta=3", "notify", 20, 5s, 60, true},
                    Comparison{"pbsp:beta=3", "interval:30ms", 20, 5s, 60, true},
                    Comparison{"pbsp:beta=3", "interval:auto", 20, 5s, 60, true},
                    Comparison{"pbsp:beta=3", "notify+interval:auto", 20, 5s, 60, true}));

/// The statistical tests can tell a sample of 10 from a sample of 11, and workers that wait from
/// workers that do not.
TEST(TwoSamples, TellDifferentDistributionsApart) {
  auto options = options_of({"pbsp:beta=10", "arrival", 50, 5s, 60});
  const auto ten = runs(options, 60);
  options.barrier = barrier::parse("pbsp:beta=11").value();
  options.seed += second_sample_seeds;
  const auto eleven = runs(options, 60);
  EXPECT_LT(kolmogorov_smirnov(figures(ten, mean_step), figures(eleven, mean_step)), 1e-4);
  options.barrier = barrier::parse("asp").value();
  const auto asp = runs(options, 60);
  const auto step = [](const StepResult& r) { return r.steps[0]; };
  EXPECT_LT(chi_square(figures(ten, step), figures(asp, step)), 1e-4);
}

}  // namespace
}  // namespace starling::sim
