// Tests that real workers whose draws are weighted by speed draw each other, and pass, as often as
// the exact law says. The messages of a job in virtual time tell the weights at each draw.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stop_token>
#include <string>
#include <vector>

#include "starling/engine/core/worker/draw_weights.hpp"
#include "tests/actor/job/scheduled_jobs.hpp"
#include "tests/barrier/successive_draws.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

constexpr core::MemberId workers = 7;
constexpr core::MemberId others = workers - 1;
/// Workers from this one on stay in their first step.
constexpr core::MemberId first_slow = 4;
constexpr int beta = 2;
/// The others are never so many steps apart: only the slow ones hold a worker back.
constexpr core::Step staleness = 200;
constexpr std::uint64_t draws_max = sanitized ? 2'000 : 100'000;

/// Computes from the messages what each worker knows of the others, and from that the exact
/// probabilities of each of its draws.
class DrawLaw {
 public:
  /// Called with each message of the cores before its receiver `to` handles it.
  void on_message(const std::string& to, const core::TranscriptMessage& message, core::Time now) {
    if (const auto* query = std::get_if<core::StepQuery>(&message)) {
      Knowledge& known = knowledge_.at(query->from);
      if (known.draw != query->draw) begin(query->from, query->draw, now);
      const auto asked = id_of(to);
      known.drawn |= bit_of(query->from, asked);
      known.weights.on_question(asked, now);
    } else if (const auto* answer = std::get_if<core::StepAnswer>(&message)) {
      knowledge_.at(id_of(to)).weights.on_answer(answer->from, answer->step, now);
    }
  }

  [[nodiscard]] std::uint64_t draws() const { return draws_; }
  /// How often draws contained none of the slow workers, and each worker, compared with the law.
  [[nodiscard]] const HitCount& passed() const { return passed_; }
  [[nodiscard]] const HitCount& included(core::MemberId worker) const {
    return included_.at(worker);
  }
  [[nodiscard]] std::uint64_t passes() const { return passes_; }
  [[nodiscard]] double lowest_weight() const { return lowest_weight_; }

 private:
  struct Knowledge {
    core::DrawWeights weights{barrier::Weighting::speed};
    std::uint64_t draw = 0;
    /// The probabilities of the sets that the present draw may have, and the set that it has so
    /// far, with a bit for each other worker.
    std::vector<double> sets;
    std::uint32_t drawn = 0;
  };

  static core::MemberId id_of(const std::string& name) {
    return static_cast<core::MemberId>(std::stoul(name.substr(name.find(' '))));
  }
  static std::uint32_t bit_of(core::MemberId asker, core::MemberId other) {
    return 1U << (other < asker ? other : other - 1);
  }

  /// A worker draws again only after some time, when it has all answers to its former draw.
  void begin(core::MemberId id, std::uint64_t draw, core::Time now) {
    Knowledge& known = knowledge_.at(id);
    if (!known.sets.empty()) count(id, known);
    std::vector<double> weights(others, 1);
    for (const auto& [number, weight] : known.weights.weights(ids_, id, now))
      weights[number] = weight;
    lowest_weight_ = std::min(lowest_weight_, std::ranges::min(weights));
    known.draw = draw;
    known.sets = set_probabilities(weights, beta);
    known.drawn = 0;
  }

  void count(core::MemberId id, const Knowledge& known) {
    std::uint32_t on_pace = 0;
    for (core::MemberId other = 0; other < workers; ++other) {
      if (other == id) continue;
      const std::uint32_t bit = bit_of(id, other);
      if (other < first_slow) on_pace |= bit;
      included_.at(other).add(
          (known.drawn & bit) != 0,
          inclusion_probability(known.sets, static_cast<std::uint32_t>(std::countr_zero(bit))));
    }
    const bool passes = (known.drawn & ~on_pace) == 0;
    passed_.add(passes, probability_within(known.sets, on_pace));
    passes_ += passes ? 1 : 0;
    ++draws_;
  }

  static std::vector<core::MemberId> all_ids() {
    std::vector<core::MemberId> ids(workers);
    std::iota(ids.begin(), ids.end(), core::MemberId{0});
    return ids;
  }

  std::vector<core::MemberId> ids_ = all_ids();
  std::vector<Knowledge> knowledge_{workers};
  std::vector<HitCount> included_{workers};
  HitCount passed_;
  std::uint64_t draws_ = 0;
  std::uint64_t passes_ = 0;
  double lowest_weight_ = 1;
};

TEST(WeightedDraws, OfRealWorkersFollowTheExactLaw) {
  JobOptions options;
  options.mode = core::Mode::peer;
  options.barrier = barrier::sampled(barrier::Ssp{staleness}, beta, barrier::Weighting::speed);
  options.recheck = barrier::Recheck{.interval = 1ms};
  options.workers = workers;
  options.delay = parse_distribution("const:20ms").value();
  options.stragglers = {{.count = workers - first_slow, .factor = 1e6}};
  options.time = 100h;
  std::stop_source stop;
  options.stop = stop.get_token();

  Schedule schedule{options.seed};
  schedule.prompt = true;
  schedule.acts_max = 100'000'000;
  DrawLaw law;
  caf::actor_system* system = nullptr;
  options.on_start = [&](const auto&, caf::actor_system& started) { system = &started; };
  schedule.on_message = [&](const std::string& to, const core::TranscriptMessage& message) {
    if (system == nullptr) return;
    law.on_message(to, message, system->clock().now().time_since_epoch());
    if (law.draws() >= draws_max) stop.request_stop();
  };
  const auto task = std::make_shared<CountingTask>(workers, 3, false);
  const auto outcome =
      run_job(schedule.scheduled(options), task, CountingTask::applier(), task->initial_states());
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  ASSERT_FALSE(schedule.stuck());
  ASSERT_GE(law.draws(), draws_max);
  for (core::MemberId worker = 0; worker < workers; ++worker)
    EXPECT_LT(std::abs(law.included(worker).deviations()), 5) << "worker " << worker;
  EXPECT_LT(std::abs(law.passed().deviations()), 5);
  EXPECT_LT(law.lowest_weight(), 0.2) << "the weights differ";
  // The last draws of the workers are not counted.
  EXPECT_NEAR(static_cast<double>(outcome->last.passes), static_cast<double>(law.passes()),
              static_cast<double>(workers));
  EXPECT_NEAR(static_cast<double>(outcome->last.draws), static_cast<double>(law.draws()),
              static_cast<double>(workers));
}

}  // namespace
}  // namespace starling::actor
