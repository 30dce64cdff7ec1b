/// Which samples the workers of a job take while workers join, leave and die: plain values, and the
/// messages by which the members agree (docs/design/0014-dealing-samples.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::core {

/// How a job deals its training data or, if it has no samples, divides the work of each step among
/// its running workers (WorkShare). `workers` and `former` describe the first deal; later ones
/// follow from the members.
struct DealOptions {
  /// The number of samples of the training data; 0 if the job deals none.
  std::uint64_t samples = 0;
  /// The number of samples that a worker takes at a step or, if `dynamic`, that all workers
  /// together take at a step.
  std::uint64_t batch = 1;
  /// True if the sizes of the workers' batches follow their speeds
  /// (docs/design/0019-dynamic-batches.md). Requires: samples > 0.
  bool dynamic = false;
  /// True if workers hand in early, so that a worker's progress is a number of samples
  /// (docs/design/0020-aggressive-synchronization.md). Requires: samples > 0, and not `dynamic`.
  bool by_samples = false;
  /// The seed of the order in which samples are dealt.
  std::uint64_t seed = 1;
  /// A worker ends when the job has taken this number of epochs, or after `steps_max` steps;
  /// nullopt if WorkerOptions::last_step alone says when it ends.
  std::optional<double> epochs = std::nullopt;
  Step steps_max = barrier::unlimited;
  /// The workers 0 to `workers` - 1 share the first deal of the job; 0 if it has no deals.
  std::size_t workers = 0;
  /// The deals that came before this first deal, in the job that this one resumes.
  std::vector<models::FormerDeal> former = {};
};

/// A worker to which samples are dealt.
struct DealtWorker {
  MemberId id = 0;
  /// 0 if it is not known: in the first deal, on a member that joined later.
  Incarnation incarnation = 0;
  /// The step with which its part begins; nullopt if it had not begun when the deal was made.
  std::optional<Step> first_step = std::nullopt;
  /// The number of samples that it takes at a step; 0 unless batches are dynamic.
  std::uint64_t batch = 0;
  /// If workers hand in early: the number of samples that it had taken in all when its part began.
  std::uint64_t first_samples = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.id, m.incarnation, m.first_step, m.batch, m.first_samples);
  }
  bool operator==(const DealtWorker&) const = default;
};

/// Numbers the deals of a job in their order: `epoch` is the epoch since which the members have
/// been the same, and `revision` counts the deals since that epoch from 0.
struct DealNumber {
  Epoch epoch = 1;
  std::uint32_t revision = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.revision); }
  auto operator<=>(const DealNumber&) const = default;
};

/// To whom samples are dealt from an epoch of the configuration on: worker w of the list takes the
/// part w of a models::SampleOrder.
struct Deal {
  DealNumber number = {};
  /// Ascending by id.
  std::vector<DealtWorker> workers = {};
  /// The earlier deals, from which the order of the samples that are left follows.
  std::vector<models::FormerDeal> former = {};
  /// The highest step of which a member holds an update of a worker that is gone. In modes without
  /// a coordinator, a worker that begins before any other goes on from this step.
  Step reached = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.number, m.workers, m.former, m.reached);
  }
  bool operator==(const Deal&) const = default;
};

/// Returns the sizes of the workers' batches if these are dynamic.
[[nodiscard]] std::vector<std::uint64_t> sizes_of(const Deal& deal);

/// How far one incarnation of a worker has got, by the updates that a member holds.
struct WorkerProgress {
  MemberIncarnation worker;
  /// The last step of which the member holds the update, and the samples of the steps up to it.
  Step step = 0;
  std::uint64_t samples = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.step, m.samples); }
  bool operator==(const WorkerProgress&) const = default;
};

/// Member to the dealer, when the members have changed or the dealer has called for reports: the
/// deal that the sender knows, what its worker has taken of it, and how far the workers that are
/// gone have got. The worker begins no step until the new deal begins.
struct DealReport {
  /// The number that the new deal will have: its epoch is Configuration::members_since of the
  /// sender's configuration.
  DealNumber number = {0, 0};
  Deal deal = {};
  /// The number of steps of the deal that the sender's worker has begun or, if workers hand in
  /// early, the number of samples that it has taken; nullopt if it has no part in the deal, or if
  /// the sender does not know yet that the deal has begun.
  std::optional<std::uint64_t> taken = std::nullopt;
  /// The number of steps that the sender's worker has begun in all; nullopt if it has not begun.
  std::optional<Step> begun = std::nullopt;
  /// True if the sender's worker begins no more steps.
  bool is_done = false;
  /// The progress of incarnations that are not in the configuration.
  std::vector<WorkerProgress> progress = {};
  /// If batches are dynamic: how many samples the sender's worker has computed lately, and in how
  /// many nanoseconds.
  std::uint64_t samples = 0;
  std::uint64_t nanoseconds = 0;
  /// If workers hand in early: the number of samples that the sender's worker has taken in all.
  std::uint64_t samples_in_all = 0;

  static constexpr std::string_view name = "deal-report";
  static constexpr auto fields(auto& m) {
    return std::tie(m.number, m.deal, m.taken, m.begun, m.is_done, m.progress, m.samples,
                    m.nanoseconds, m.samples_in_all);
  }
};

/// Member to the dealer: the sender's worker has taken so much of the deal `present` that a new one
/// should follow. If batches are dynamic, their sizes are revised; if workers hand in early, all
/// share what slow workers have not taken.
struct RevisionRequest {
  DealNumber present;

  static constexpr std::string_view name = "revision-request";
  static constexpr auto fields(auto& m) { return std::tie(m.present); }
};

/// Dealer to all members: report what was taken, because the deal `next` is to follow.
struct CallForReports {
  DealNumber next;

  static constexpr std::string_view name = "call-for-reports";
  static constexpr auto fields(auto& m) { return std::tie(m.next); }
};

/// Dealer to all members: the samples are dealt in this way as soon as all members know the deal.
struct NewDeal {
  Deal deal;

  static constexpr std::string_view name = "new-deal";
  static constexpr auto fields(auto& m) { return std::tie(m.deal); }
};

/// Member to the dealer: the sender knows this deal.
struct DealReceived {
  DealNumber number;

  static constexpr std::string_view name = "deal-received";
  static constexpr auto fields(auto& m) { return std::tie(m.number); }
};

/// Dealer to all members: all members know this deal, and their workers begin it.
struct BeginDeal {
  DealNumber number;

  static constexpr std::string_view name = "begin-deal";
  static constexpr auto fields(auto& m) { return std::tie(m.number); }
};

/// How far a worker has got. The first two fields are set only if the samples were dealt anew since
/// the job began, batches are dynamic or workers hand in early.
struct DealProgress {
  /// How many epochs of the data the job has taken, if all workers have got as far as this one.
  std::optional<double> data_epoch = std::nullopt;
  /// The step after which the worker ends. If workers hand in early, the worker ends after this
  /// step only if it does not hand in early any more, and no later deal changes its part.
  std::optional<Step> last_step = std::nullopt;
  /// The number of samples that the worker takes at a step; 0 unless batches are dynamic.
  std::uint64_t batch = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.data_epoch, m.last_step, m.batch); }
};

/// A worker's part of a deal.
struct DealPart {
  /// The worker has part number `index`, from 0, of `count` parts.
  std::uint32_t index = 0;
  std::uint32_t count = 1;
  /// How the samples are dealt; null if the job deals none.
  std::shared_ptr<const models::SampleOrder> order = nullptr;
  /// If it is set, the worker ends after this number of steps of the deal, or after `steps_max`
  /// steps of the job.
  std::optional<std::uint64_t> steps = std::nullopt;
  Step steps_max = barrier::unlimited;
  /// If workers hand in early: the worker ends after this number of samples of the deal;
  /// barrier::unlimited or more if another limit ends it. nullopt: its progress is a number of
  /// steps.
  std::optional<std::uint64_t> samples = std::nullopt;
  /// When the deal was made, some worker had begun the step before this one, but none this step.
  /// Under bsp, a job that divides its work begins the deal with this step on all workers.
  Step common_first_step = 0;
  /// The number of samples that the worker takes at a step; 0 unless batches are dynamic.
  std::uint64_t batch = 0;
  /// As Deal::reached.
  Step reached = 0;
};

}  // namespace starling::core
