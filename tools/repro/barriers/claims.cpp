#include "starling/tools/repro/barriers/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace starling::program {
namespace {

constexpr const char* ssp = "ssp:s=3";
constexpr const char* dssp = "dssp:low=3,high=15";
constexpr const char* capped = "dssp:low=3,high=15,cap";
constexpr const char* ebsp = "ebsp:ahead=15";
constexpr const char* quorum = "quorum:q=0.75";
constexpr const char* pssp = "pssp:s=3,beta=1";

/// Collects claims.
class ClaimList {
 public:
  explicit ClaimList(const BarrierStudy& study) : study_(study) {}

  [[nodiscard]] const StudiedCluster& one_slow_of_four() const { return study_.clusters[0]; }
  [[nodiscard]] const StudiedCluster& one_slow_of_two() const { return study_.clusters[1]; }
  [[nodiscard]] const StudiedCluster& equal_with_jitter() const { return study_.clusters[2]; }

  /// Adds a claim about the updates of a barrier relative to those of bsp.
  void add_ratio(const std::string& finding, const StudiedCluster& cluster,
                 const std::string& barrier, double published) {
    ExperimentResults results;
    const Summary ratios = compute_statistics(update_ratios(cluster, barrier, "bsp"));
    results.add(finding, published, ratios);
    Claim claim = std::move(results.claims.front());
    claim.here = with_error(ratios, 2);
    add(std::move(claim),
        &cluster == &one_slow_of_four() ? live_ratio_text(study_, barrier) : not_run_live);
  }
  /// Adds a claim that is either reproduced or not.
  void add(const std::string& finding, const std::string& published, const std::string& here,
           bool holds, const std::string& live) {
    add({finding, published, here, holds ? ClaimStatus::reproduced : ClaimStatus::not_reproduced},
        live);
  }

  /// Returns the largest lag of a barrier in all simulations.
  [[nodiscard]] double largest_lag(const std::string& barrier) const {
    double largest = 0;
    for (const StudiedCluster& cluster : study_.clusters)
      if (const BarrierTrials* runs = runs_of(cluster, barrier))
        largest = std::max(largest, figures_of(*runs).max_lag);
    return largest;
  }
  [[nodiscard]] double waiting(const std::string& barrier) const {
    return figures_of(*runs_of(one_slow_of_four(), barrier)).waiting_share.mean;
  }

  /// Prints a figure of the two live runs of a barrier.
  template <class Print>
  [[nodiscard]] std::string live(const std::string& barrier, Print print) const {
    return print(live_run(study_, barrier, constant_delay)) + " and " +
           print(live_run(study_, barrier, exponential_delay));
  }
  [[nodiscard]] std::string live_lag(const std::string& barrier) const {
    return live(barrier, [](const auto& run) { return fmt::format("{:.0f}", run.max_lag); });
  }
  [[nodiscard]] std::string live_waiting(const std::string& barrier) const {
    return live(barrier,
                [](const auto& run) { return fmt::format("{:.1f} %", 100 * run.waiting_share); });
  }

  [[nodiscard]] std::vector<ComparedClaim> take() && { return std::move(claims_); }

 private:
  void add(Claim claim, const std::string& live) { claims_.push_back({std::move(claim), live}); }

  const BarrierStudy& study_;
  std::vector<ComparedClaim> claims_;
};

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// Returns true if every seed gave both barriers the same number of updates.
bool are_equal(const StudiedCluster& cluster, const std::string& barrier,
               const std::string& other) {
  return std::ranges::all_of(update_ratios(cluster, barrier, other),
                             [](double ratio) { return ratio == 1; });
}

void add_ssp(ClaimList& list) {
  list.add("SSP (Ho et al. 2013): workers get s + 1 = 4 steps apart, and no more", "4",
           fmt::format("{:.0f}", list.largest_lag(ssp)), list.largest_lag(ssp) == 4,
           list.live_lag(ssp));
  list.add_ratio("SSP absorbs transient delays: updates, equal speeds, 30 % jitter",
                 list.equal_with_jitter(), ssp, 1.30);
  list.add_ratio("SSP does not cure a permanent straggler: updates, (1,1,1,2)",
                 list.one_slow_of_four(), ssp, 1.00);
}

void add_dssp(ClaimList& list) {
  list.add_ratio("DSSP (Zhao et al. 2019) as published: updates, (1,1,1,2)",
                 list.one_slow_of_four(), dssp, 1.10);
  list.add("DSSP as published grants runs beyond s = 15: largest lag above 16", "above 16",
           fmt::format("{:.0f}", list.largest_lag(dssp)), list.largest_lag(dssp) > 16,
           list.live_lag(dssp));
  list.add_ratio("DSSP with a cap is like SSP: updates, (1,1,1,2)", list.one_slow_of_four(), capped,
                 1.01);
  list.add("DSSP with a cap: workers get 16 steps apart, and no more", "16",
           fmt::format("{:.0f}", list.largest_lag(capped)), list.largest_lag(capped) == 16,
           list.live_lag(capped));
}

void add_ebsp(ClaimList& list) {
  list.add_ratio("EBSP (Zhao et al. 2019): updates, (1,1,1,2)", list.one_slow_of_four(), ebsp,
                 1.65);
  list.add_ratio("EBSP: updates, (1,2)", list.one_slow_of_two(), ebsp, 1.44);
  list.add_ratio("EBSP gains nothing if speeds scatter: updates, equal speeds, 30 % jitter",
                 list.equal_with_jitter(), ebsp, 1.00);
  const double bsp_waiting = list.waiting("bsp");
  const double ebsp_waiting = list.waiting(ebsp);
  list.add("EBSP: workers hardly wait, (1,1,1,2); bsp beside it", "6 %; 37 %",
           percent(ebsp_waiting) + "; " + percent(bsp_waiting),
           ebsp_waiting < 0.08 && bsp_waiting > 0.34,
           list.live_waiting(ebsp) + "; " + list.live_waiting("bsp"));
}

void add_fluent(ClaimList& list) {
  const auto equal = [&](const std::string& barrier, const std::string& other) {
    return are_equal(list.one_slow_of_four(), barrier, other) &&
           are_equal(list.equal_with_jitter(), barrier, other);
  };
  const auto word = [](bool holds) { return holds ? "equal" : "not equal"; };
  const bool is_ssp = equal("fluent:s=3,p=1", ssp);
  const bool is_asp = equal("fluent:s=3,p=0", "asp");
  list.add("FluentPS (Yao et al. 2019), p = 1: the updates of SSP, seed by seed", "equal",
           word(is_ssp), is_ssp, not_run_live);
  list.add("FluentPS, p = 0: the updates of ASP, seed by seed", "equal", word(is_asp), is_asp,
           not_run_live);
  std::string here;
  bool rises = true;
  double last = 0;
  for (const char* barrier : {ssp, "fluent:s=3,p=0.5", "fluent:s=3,p=0.1", "asp"}) {
    const double ratio =
        compute_statistics(update_ratios(list.one_slow_of_four(), barrier, "bsp")).mean;
    here += fmt::format("{}{:.2f}", here.empty() ? "" : " < ", ratio);
    rises = rises && ratio > last;
    last = ratio;
  }
  list.add("FluentPS is between SSP and ASP: updates, (1,1,1,2), p = 1, 0.5, 0.1, 0", "rise", here,
           rises, not_run_live);
}

void add_quorum(ClaimList& list) {
  const Summary of_asp = compute_statistics(update_ratios(list.one_slow_of_four(), quorum, "asp"));
  list.add(
      "Backup workers (Chen et al. 2016): nobody waits for the slowest quarter: updates, "
      "(1,1,1,2), as a share of asp",
      "above 0.9", with_error(of_asp, 2), of_asp.mean > 0.9,
      list.live_waiting(quorum) + " waiting");
}

void add_pssp(ClaimList& list) {
  const auto share = [&](const char* barrier) {
    return compute_statistics(update_ratios(list.one_slow_of_four(), barrier, "asp"));
  };
  const Summary of_pssp = share(pssp);
  const Summary of_ssp = share(ssp);
  list.add(
      "PSP (Wang et al. 2017): sampling keeps the progress that SSP loses to a straggler: "
      "updates, (1,1,1,2), as a share of asp",
      "more than SSP", with_error(of_pssp, 2) + "; ssp " + with_error(of_ssp, 2),
      of_pssp.min > of_ssp.max, list.live_waiting(pssp) + " waiting");
}

}  // namespace

std::string live_ratio_text(const BarrierStudy& study, const std::string& barrier) {
  const auto ratio = [&](const char* delay) {
    const LiveComparison run = live_run(study, barrier, delay);
    const LiveComparison bsp = live_run(study, "bsp", delay);
    return (run.updates / run.seconds) / (bsp.updates / bsp.seconds);
  };
  return fmt::format("{:.2f} and {:.2f}", ratio(constant_delay), ratio(exponential_delay));
}

std::vector<ComparedClaim> barrier_claims(const BarrierStudy& study) {
  ClaimList list{study};
  add_ssp(list);
  add_dssp(list);
  add_ebsp(list);
  add_fluent(list);
  add_quorum(list);
  add_pssp(list);
  return std::move(list).take();
}

}  // namespace starling::program
