/// Deals the samples or, in a job without samples, the work anew when the members of a job change
/// and, if batches are dynamic or workers hand in early, about once an epoch. The member with the
/// lowest id is the dealer: it waits for the DealReport of every member, sends all of them the new
/// deal, and lets it begin when all have received it.
///
/// The reports of one epoch come after their senders have adopted its configuration, so no owner
/// takes an update of a former member any more, and no worker begins a step by the former deal. If
/// the members change again before all know the new deal, the latest deal that any member knows
/// counts: nobody has taken anything of the new one. All members of an epoch know each deal of it
/// that has begun.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "starling/engine/core/deals/deal.hpp"

namespace starling::core {

/// One call at a time; not thread-safe.
class Dealer {
 public:
  /// `first` is the first configuration of the job; nullptr on a member that joins later. Requires:
  /// options.workers > 0. With samples: options.batch > 0, and models::check_deals() accepts
  /// options.former. Without samples: options.former is empty.
  explicit Dealer(DealOptions options, const Configuration* first = nullptr);

  /// Returns the latest deal that this member knows.
  [[nodiscard]] const Deal& deal() const noexcept { return *deal_; }
  [[nodiscard]] const std::shared_ptr<const Deal>& shared_deal() const noexcept { return deal_; }
  /// Returns the member that deals.
  [[nodiscard]] static MemberId dealer_of(const Configuration& configuration) {
    return configuration.members.front().id;
  }

  /// Returns true once for each epoch in which the members have changed: this member then sends the
  /// dealer a report.
  [[nodiscard]] bool take_due_report(const Configuration& configuration);
  /// Returns true once for each CallForReports of the dealer: this member then sends the dealer a
  /// report.
  [[nodiscard]] bool take_due_report(const Configuration& configuration,
                                     const CallForReports& call);
  /// Returns the number of the deal for which this member reported last.
  [[nodiscard]] DealNumber reported() const noexcept { return reported_; }

  /// Returns true if `worker`, this member's worker, should ask for a new deal (RevisionRequest)
  /// when it has taken `taken` of the current deal (Worker::dealt_taken()). If batches are dynamic,
  /// it asks after the steps of a whole epoch and of what was left before, but at least 8, and
  /// again each time after as many steps. If workers hand in early, it asks when at most a batch is
  /// left of its samples of the deal's first whole epoch and of what former deals left, or of its
  /// samples until the job ends: the others then share what slow workers have not taken.
  [[nodiscard]] bool take_due_revision(MemberId worker, std::uint64_t taken);
  /// On the dealer: returns the call that the request leads to. There is none if the deal is not
  /// the current one, if reports were called for already, or if many former deals are not taken
  /// completely.
  [[nodiscard]] std::optional<CallForReports> on(const Configuration& configuration,
                                                 const RevisionRequest& request);
  /// Returns what a report says of the incarnations that are not in the configuration. `progress`
  /// is what the member's exchange knows; it may forget an incarnation when a later one writes, so
  /// the most that was known since the current deal counts.
  [[nodiscard]] std::vector<WorkerProgress> progress_of_departed(
      const Configuration& configuration, const std::vector<WorkerProgress>& progress);

  /// On the dealer: takes a member's report. Returns the new deal if all members have reported.
  [[nodiscard]] std::optional<Deal> on(const Configuration& configuration, MemberId from,
                                       const DealReport& report);

  /// Adopts a deal, which then waits for its BeginDeal. Ignores, and returns false for, one that is
  /// not of the configuration's epoch or that no dealer makes.
  [[nodiscard]] bool on(const Configuration& configuration, const NewDeal& next);
  /// On the dealer: takes a member's receipt. Returns a message to all members if all of them know
  /// the deal.
  [[nodiscard]] std::optional<BeginDeal> on(const Configuration& configuration, MemberId from,
                                            const DealReceived& receipt);
  /// Lets the current deal begin. Ignores, and returns false for, a deal that is not the current
  /// one, one that has begun, and one for whose successor this member has reported.
  [[nodiscard]] bool on(const Configuration& configuration, const BeginDeal& begin);
  /// Returns true if this member's worker may take samples of the current deal.
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }

  /// Returns the part of a worker in the deal; nullopt if it has none.
  [[nodiscard]] std::optional<DealPart> part_of(MemberId worker);

  [[nodiscard]] bool deals_samples() const noexcept { return options_.samples > 0; }
  /// Returns the order by which a deal's samples are dealt. Requires: deals_samples(), and the deal
  /// has workers.
  [[nodiscard]] models::SampleOrder order_of(const Deal& deal) const;

  /// Returns the description of a deal that has ended, without what was taken of it.
  [[nodiscard]] models::FormerDeal former_deal(const Deal& deal) const;

  /// Returns what each worker of `latest` has taken, according to `reports`. Requires: `reports`
  /// are those of all members of `configuration`.
  [[nodiscard]] std::vector<models::Taken> taken_of(
      const Deal& latest, const Configuration& configuration,
      const std::map<MemberId, DealReport>& reports) const;

 private:
  [[nodiscard]] Deal next_deal(const Configuration& configuration) const;
  /// False for former deals that no job of these options can have had.
  [[nodiscard]] bool are_possible(const std::vector<models::FormerDeal>& former) const;
  /// False for a deal that no dealer makes.
  [[nodiscard]] bool is_possible(const Deal& deal) const;
  /// True if new deals are made also while the members stay the same.
  [[nodiscard]] bool revises() const noexcept { return options_.dynamic || options_.by_samples; }
  /// Returns the number of the deal for which reports are collected now.
  [[nodiscard]] DealNumber awaited(const Configuration& configuration) const;
  /// Sets the sizes of the batches. Requires: reports_ has the reports of all workers of the deal.
  void size_batches(Deal& deal) const;
  /// Returns the order of deal_. Requires: the job deals samples, and deal_ has workers.
  [[nodiscard]] const std::shared_ptr<const models::SampleOrder>& order();

  DealOptions options_;
  std::shared_ptr<const Deal> deal_;
  /// The first deal of a job begins with the job.
  bool has_begun_ = true;
  /// The order of deal_; made when it is needed.
  std::shared_ptr<const models::SampleOrder> order_;
  /// The number in the last report that this member has sent.
  DealNumber reported_;
  /// How much of the current deal this member's worker takes before it asks for a revision; absent
  /// until it is needed.
  std::optional<std::uint64_t> revision_due_;
  /// The most that was known of each incarnation since the current deal.
  std::map<MemberIncarnation, WorkerProgress> known_progress_;
  /// On the dealer: the last deal for which it has called for reports.
  DealNumber called_;
  /// On the dealer: the reports for the deal `collected_`, by sender.
  DealNumber collected_ = {0, 0};
  std::map<MemberId, DealReport> reports_;
  /// On the dealer: the members that know the deal `collected_`.
  std::set<MemberId> receivers_;
};

}  // namespace starling::core
