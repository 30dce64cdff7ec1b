#include "starling/tools/repro/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace starling::program {
namespace {

/// The least gains that reproduce a claim: less than the published 45 / 22 and 72 / 22, as six
/// workers with exponential steps achieve less.
constexpr double pbsp_gain = 1.3;
constexpr double pssp_gain = 1.8;

enum class Role { bsp, ssp, pbsp, pssp, asp, other };

Role role_of(const barrier::Barrier& barrier) {
  if (barrier::always_passes(barrier)) return Role::asp;
  const bool sampled = barrier.sample.has_value();
  if (barrier::is_bsp(barrier)) return Role::bsp;
  if (std::holds_alternative<barrier::Bsp>(barrier.rule)) return Role::pbsp;
  if (std::holds_alternative<barrier::Ssp>(barrier.rule)) return sampled ? Role::pssp : Role::ssp;
  return Role::other;
}

using Everyone = std::vector<BarrierRuns>;

/// Returns null where no barrier has the role.
const BarrierRuns* find(const Everyone& all, Role role) {
  const auto at =
      std::ranges::find(all, role, [](const auto& one) { return role_of(one.barrier); });
  return at == all.end() ? nullptr : &*at;
}

std::string name_of(const BarrierRuns& all) { return barrier::print(all.barrier); }

void judge_fewest(const BarrierRuns& bsp, const Everyone& all, ExperimentResults& results) {
  const double fewest = over_runs(bsp, final_updates).mean;
  std::string here = fmt::format("{:.0f}", fewest);
  bool holds = true;
  for (const BarrierRuns& other : all) {
    if (&other == &bsp) continue;
    const double made = over_runs(other, final_updates).mean;
    here +=
        fmt::format("{} {} {:.0f}", here.find(';') == here.npos ? ";" : ",", name_of(other), made);
    holds = holds && fewest < made;
  }
  results.add("Updates at equal wall time: " + name_of(bsp) + " makes the fewest",
              "22; SSP 71, pBSP 45, pSSP 72, ASP 74", here, holds);
}

/// Adds a claim on how many times as many updates as `bsp` another barrier makes, comparing runs of
/// the same seed, made soon after one another.
void judge_gain(const BarrierRuns& bsp, const BarrierRuns& other, double least,
                const std::string& published, ExperimentResults& results) {
  std::vector<double> gains;
  for (std::size_t i = 0; i < other.runs.size(); ++i)
    gains.push_back(final_updates(other.runs[i]) / final_updates(bsp.runs.at(i)));
  const Summary gain = summarise(gains);
  results.add(fmt::format("Updates of {}: at least {:.1f} times those of {}", name_of(other), least,
                          name_of(bsp)),
              published, with_error(gain, 2) + " times", gain.mean >= least);
}

void judge_per_update(const BarrierRuns& bsp, const Everyone& all, ExperimentResults& results) {
  double equal = over_runs(bsp, final_updates).min;
  for (const BarrierRuns& other : all) equal = std::min(equal, over_runs(other, final_updates).min);
  const auto at_equal = [&](const BarrierRuns& of) {
    return over_runs(of, [&](const TrainingRun& run) { return accuracy_at(run, equal); });
  };
  const Summary best = at_equal(bsp);
  std::string here = fmt::format("after {:.0f} updates {}", equal, with_error(best, 3));
  bool holds = true;
  for (const BarrierRuns& other : all) {
    if (&other == &bsp) continue;
    const Summary reached = at_equal(other);
    here += fmt::format(", {} {}", name_of(other), with_error(reached, 3));
    holds = holds && best.mean >= reached.mean;
  }
  results.add("Accuracy at equal updates: " + name_of(bsp) + " is the best", "holds", here, holds);
}

void judge_late(const BarrierRuns& pssp, const BarrierRuns& asp, ExperimentResults& results) {
  const auto spread = [](const TrainingRun& run) { return late_accuracy(run).sd; };
  const auto height = [](const TrainingRun& run) { return late_accuracy(run).mean; };
  const Summary even = over_runs(pssp, spread);
  const Summary uneven = over_runs(asp, spread);
  results.add(
      fmt::format("Late accuracy: {} varies less than {} (sd)", name_of(pssp), name_of(asp)),
      "smooth; swings by tenths", fmt::format("{}; {}", with_error(even, 4), with_error(uneven, 4)),
      even.mean < uneven.mean);
  const Summary high = over_runs(pssp, height);
  const Summary low = over_runs(asp, height);
  results.add(fmt::format("Late accuracy: {} is above {} (mean)", name_of(pssp), name_of(asp)),
              "0.85; 0.43 to 0.65", fmt::format("{}; {}", with_error(high, 3), with_error(low, 3)),
              high.mean > low.mean);
}

}  // namespace

Summary over_runs(const BarrierRuns& all, const std::function<double(const TrainingRun&)>& figure) {
  std::vector<double> values;
  for (const TrainingRun& run : all.runs) values.push_back(figure(run));
  return summarise(values);
}

double final_updates(const TrainingRun& run) { return run.curve.back().updates; }
double final_accuracy(const TrainingRun& run) { return run.curve.back().accuracy; }

Summary late_accuracy(const TrainingRun& run) {
  const std::size_t all = run.curve.size();
  const std::size_t late = std::min(all, std::max<std::size_t>(2, (all + 4) / 5));
  std::vector<double> values;
  for (std::size_t i = all - late; i < all; ++i) values.push_back(run.curve[i].accuracy);
  return summarise(values);
}

double accuracy_at(const TrainingRun& run, double updates) {
  double accuracy = run.curve.front().accuracy;
  for (const TrainingPoint& point : run.curve)
    if (point.updates <= updates) accuracy = point.accuracy;
  return accuracy;
}

std::vector<TrainingPoint> mean_curve(const BarrierRuns& all) {
  if (all.runs.empty()) return {};
  std::size_t points = SIZE_MAX;
  for (const TrainingRun& run : all.runs) points = std::min(points, run.curve.size());
  std::vector<TrainingPoint> mean(points);
  const double share = 1 / static_cast<double>(all.runs.size());
  for (const TrainingRun& run : all.runs) {
    const std::size_t first = run.curve.size() - points;
    for (std::size_t i = 0; i < points; ++i) {
      const TrainingPoint& point = run.curve[first + i];
      mean[i].seconds += share * point.seconds;
      mean[i].updates += share * point.updates;
      mean[i].accuracy += share * point.accuracy;
    }
  }
  return mean;
}

void judge_training(const Everyone& all, ExperimentResults& results) {
  const BarrierRuns* bsp = find(all, Role::bsp);
  const BarrierRuns* asp = find(all, Role::asp);
  const BarrierRuns* pbsp = find(all, Role::pbsp);
  const BarrierRuns* pssp = find(all, Role::pssp);
  if (bsp != nullptr && all.size() > 1) judge_fewest(*bsp, all, results);
  if (bsp != nullptr && pbsp != nullptr) judge_gain(*bsp, *pbsp, pbsp_gain, "2.0 times", results);
  if (bsp != nullptr && pssp != nullptr) judge_gain(*bsp, *pssp, pssp_gain, "3.3 times", results);
  if (pssp != nullptr && asp != nullptr) judge_late(*pssp, *asp, results);
  if (bsp != nullptr && all.size() > 1) judge_per_update(*bsp, all, results);
}

}  // namespace starling::program
