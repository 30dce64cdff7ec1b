#include "starling/tools/repro/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace starling::program {
namespace {

/// The smallest gains in updates over BSP with which a claim is reproduced. They are smaller than
/// the published gains, 45 / 22 and 72 / 22, which six workers with exponentially distributed step
/// times do not reach.
constexpr double pbsp_gain_min = 1.3;
constexpr double pssp_gain_min = 1.8;

/// The barriers of the published run, here with any parameters; `other` is any other barrier.
enum class Kind { bsp, ssp, pbsp, pssp, asp, other };

Kind barrier_kind(const barrier::Barrier& barrier) {
  if (barrier::always_passes(barrier)) return Kind::asp;
  const bool is_sampled = barrier.sample.has_value();
  if (barrier::is_bsp(barrier)) return Kind::bsp;
  if (std::holds_alternative<barrier::Bsp>(barrier.rule)) return Kind::pbsp;
  if (std::holds_alternative<barrier::Ssp>(barrier.rule))
    return is_sampled ? Kind::pssp : Kind::ssp;
  return Kind::other;
}

using AllRuns = std::vector<BarrierRuns>;

/// Returns the runs of the first barrier of a kind; null if there is none.
const BarrierRuns* find(const AllRuns& all, Kind kind) {
  const auto found =
      std::ranges::find(all, kind, [](const auto& runs) { return barrier_kind(runs.barrier); });
  return found == all.end() ? nullptr : &*found;
}

std::string name_of(const BarrierRuns& runs) { return barrier::print(runs.barrier); }

/// Adds the claim that BSP makes the fewest updates.
void add_fewest_updates_claim(const BarrierRuns& bsp, const AllRuns& all,
                              ExperimentResults& results) {
  const double fewest = over_runs(bsp, final_updates).mean;
  std::string here = fmt::format("{:.0f}", fewest);
  bool is_reproduced = true;
  for (const BarrierRuns& other : all) {
    if (&other == &bsp) continue;
    const double updates = over_runs(other, final_updates).mean;
    here += fmt::format("{} {} {:.0f}", here.find(';') == here.npos ? ";" : ",", name_of(other),
                        updates);
    is_reproduced = is_reproduced && fewest < updates;
  }
  results.add("Updates at equal wall time: " + name_of(bsp) + " makes the fewest",
              "22; SSP 71, pBSP 45, pSSP 72, ASP 74", here, is_reproduced);
}

/// Adds the claim that another barrier makes at least `gain_min` times as many updates as `bsp`.
/// Compares runs of the same seed, because they were made shortly after one another.
void add_gain_claim(const BarrierRuns& bsp, const BarrierRuns& other, double gain_min,
                    const std::string& published, ExperimentResults& results) {
  std::vector<double> gains;
  for (std::size_t i = 0; i < other.runs.size(); ++i)
    gains.push_back(final_updates(other.runs[i]) / final_updates(bsp.runs.at(i)));
  const Summary gain = compute_statistics(gains);
  results.add(fmt::format("Updates of {}: at least {:.1f} times those of {}", name_of(other),
                          gain_min, name_of(bsp)),
              published, with_error(gain, 2) + " times", gain.mean >= gain_min);
}

/// Adds the claim that BSP has the best accuracy after the same number of updates.
void add_accuracy_per_update_claim(const BarrierRuns& bsp, const AllRuns& all,
                                   ExperimentResults& results) {
  double updates = over_runs(bsp, final_updates).min;
  for (const BarrierRuns& other : all)
    updates = std::min(updates, over_runs(other, final_updates).min);
  const auto accuracy_of = [&](const BarrierRuns& runs) {
    return over_runs(runs, [&](const TrainingRun& run) { return accuracy_at(run, updates); });
  };
  const Summary best = accuracy_of(bsp);
  std::string here = fmt::format("after {:.0f} updates {}", updates, with_error(best, 3));
  bool is_reproduced = true;
  for (const BarrierRuns& other : all) {
    if (&other == &bsp) continue;
    const Summary accuracy = accuracy_of(other);
    here += fmt::format(", {} {}", name_of(other), with_error(accuracy, 3));
    is_reproduced = is_reproduced && best.mean >= accuracy.mean;
  }
  results.add("Accuracy at equal updates: " + name_of(bsp) + " is the best", "holds", here,
              is_reproduced);
}

/// Adds the claims that the late accuracy of pSSP varies less than that of ASP, and is higher.
void add_late_accuracy_claims(const BarrierRuns& pssp, const BarrierRuns& asp,
                              ExperimentResults& results) {
  const auto late_sd = [](const TrainingRun& run) { return late_accuracy(run).sd; };
  const auto late_mean = [](const TrainingRun& run) { return late_accuracy(run).mean; };
  const Summary pssp_sd = over_runs(pssp, late_sd);
  const Summary asp_sd = over_runs(asp, late_sd);
  results.add(
      fmt::format("Late accuracy: {} varies less than {} (sd)", name_of(pssp), name_of(asp)),
      "smooth; swings by tenths",
      fmt::format("{}; {}", with_error(pssp_sd, 4), with_error(asp_sd, 4)),
      pssp_sd.mean < asp_sd.mean);
  const Summary pssp_mean = over_runs(pssp, late_mean);
  const Summary asp_mean = over_runs(asp, late_mean);
  results.add(fmt::format("Late accuracy: {} is above {} (mean)", name_of(pssp), name_of(asp)),
              "0.85; 0.43 to 0.65",
              fmt::format("{}; {}", with_error(pssp_mean, 3), with_error(asp_mean, 3)),
              pssp_mean.mean > asp_mean.mean);
}

}  // namespace

Summary over_runs(const BarrierRuns& runs,
                  const std::function<double(const TrainingRun&)>& figure) {
  std::vector<double> values;
  for (const TrainingRun& run : runs.runs) values.push_back(figure(run));
  return compute_statistics(values);
}

double final_updates(const TrainingRun& run) { return run.curve.back().updates; }
double final_accuracy(const TrainingRun& run) { return run.curve.back().accuracy; }

Summary late_accuracy(const TrainingRun& run) {
  const std::size_t points = run.curve.size();
  const std::size_t late = std::min(points, std::max<std::size_t>(2, (points + 4) / 5));
  std::vector<double> values;
  for (std::size_t i = points - late; i < points; ++i) values.push_back(run.curve[i].accuracy);
  return compute_statistics(values);
}

double accuracy_at(const TrainingRun& run, double updates) {
  double accuracy = run.curve.front().accuracy;
  for (const TrainingPoint& point : run.curve)
    if (point.updates <= updates) accuracy = point.accuracy;
  return accuracy;
}

std::vector<TrainingPoint> mean_curve(const BarrierRuns& runs) {
  if (runs.runs.empty()) return {};
  std::size_t points = SIZE_MAX;
  for (const TrainingRun& run : runs.runs) points = std::min(points, run.curve.size());
  std::vector<TrainingPoint> mean(points);
  const double share = 1 / static_cast<double>(runs.runs.size());
  for (const TrainingRun& run : runs.runs) {
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

void add_training_claims(const AllRuns& all, ExperimentResults& results) {
  const BarrierRuns* bsp = find(all, Kind::bsp);
  const BarrierRuns* asp = find(all, Kind::asp);
  const BarrierRuns* pbsp = find(all, Kind::pbsp);
  const BarrierRuns* pssp = find(all, Kind::pssp);
  if (bsp != nullptr && all.size() > 1) add_fewest_updates_claim(*bsp, all, results);
  if (bsp != nullptr && pbsp != nullptr)
    add_gain_claim(*bsp, *pbsp, pbsp_gain_min, "2.0 times", results);
  if (bsp != nullptr && pssp != nullptr)
    add_gain_claim(*bsp, *pssp, pssp_gain_min, "3.3 times", results);
  if (pssp != nullptr && asp != nullptr) add_late_accuracy_claims(*pssp, *asp, results);
  if (bsp != nullptr && all.size() > 1) add_accuracy_per_update_claim(*bsp, all, results);
}

}  // namespace starling::program
