/// Checks the invariants of a simulated replicated job after every event. The updates of the job
/// are integers (see chaos_job.hpp), so sums are exact.
///
/// In every range, every incarnation of every worker has two numbers: how many of its
/// steps the range holds, and the sum of the numbers of these steps. Because steps rise by one, the
/// two show exactly which steps the range holds, and whether it holds one twice. Two more numbers
/// of the range show the order of all updates. The invariants:
///
/// * each configuration epoch has one configuration; only the primary of a range, in the epoch of
///   its present owners (Ownership::owner_epoch), acknowledges and forwards pushes, and only the
///   primary in the present epoch answers reads;
/// * every full owner of a range has all acknowledged updates of the range, each of them once;
/// * no worker reports a higher step than its own, or, once it has begun, that it has not begun;
/// * no worker passes a barrier against its rule, as checked by the true steps of all drawn
///   workers; if a coordinator keeps the steps, no worker passes without the permission of the
///   coordinator that the worker's configuration names;
/// * the values that a worker reads include all updates up to the reader's step - s of each worker
///   in the view that let it pass, where s is the staleness; and each update once;
/// * a worker that joins begins at a step that the coordinator or an asked worker has told it,
///   unless the exchange is the barrier;
/// * in the end all replicas of a range are equal in everything that an owner stores, and count the
///   samples of the updates that they hold;
/// * each sample of each epoch is taken once (SampleChecker).
///
/// Which members hold a range, and are its owners here, depends on the exchange (ExchangeOracle).
///
/// A node of a scenario runs one member. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/engine/sim/chaos/exchange_oracle.hpp"
#include "starling/engine/sim/chaos/sample_checker.hpp"
#include "starling/engine/sim/chaos/scenario.hpp"

namespace starling::sim {

/// The largest number of incarnations of members in a run.
inline constexpr std::size_t incarnations_max = 48;

/// Returns the sum of the numbers of the `count` steps after step `first`.
[[nodiscard]] inline double sum_of_steps(core::Step first, core::Step count) {
  return static_cast<double>(count) * static_cast<double>(first) +
         static_cast<double>(count) * static_cast<double>(count + 1) / 2;
}

class InvariantChecker {
 public:
  using MemberCore = core::MemberCore;

  /// `deal` says how the job deals its samples.
  InvariantChecker(const Scenario& scenario, const core::DealOptions& deal);

  /// Registers a new incarnation of a node. Returns its index, or nothing if there are
  /// `incarnations_max` already. Requires: `core` lives until on_incarnation_ended() or until the
  /// node's next incarnation is registered.
  std::optional<std::size_t> on_incarnation_started(core::Member member, const MemberCore* core);
  /// Registers that the node's incarnation has ended.
  void on_incarnation_ended(NodeId id);
  /// Registers that the node was told to leave, after which its worker ends early.
  void on_leave(NodeId id) { incarnations_[nodes_[id].incarnation_index].leaves = true; }

  /// Call after each event of a node, before its effects are executed.
  void on_event(NodeId id);
  /// Call one of these for each effect that is executed, in order.
  void on_dispatch(NodeId id, const core::Envelope& envelope);
  void on_plan(NodeId id, core::Step step);
  void on_compute(NodeId id, const core::Compute& compute);
  /// The worker of the node hands in only the first `samples` samples of the step after `step`.
  void shorten_batch(NodeId id, core::Step step, std::size_t samples) {
    samples_.shorten(nodes_[id].incarnation_index, step, samples);
  }

  /// Checks that all owners of a range hold the same state. Call when all faults have ended and no
  /// update is in flight.
  void expect_equal_replicas();
  /// Checks that each sample was taken once. Call when all workers have ended.
  void expect_samples_taken_once();
  /// Checks that no worker has ended before its last step, for nobody stops the job. Call when all
  /// workers have ended, and only if the job has no limit of epochs.
  void expect_all_steps();

  /// Describes the first violation; empty while there is none.
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }
  [[nodiscard]] const core::ConfigurationPtr& latest() const noexcept { return epochs_.back(); }
  /// The configurations that were proposed to the council for an epoch after the latest.
  [[nodiscard]] const std::vector<core::ConfigurationPtr>& proposed() const { return proposed_; }
  /// Returns the core of `owner`, an owner in the latest configuration, if it is a full owner;
  /// otherwise nullptr. A full owner holds the whole range, and its own configuration too says that
  /// it has owned the range without a break. It must hold every acknowledged update.
  [[nodiscard]] const MemberCore* full_owner(core::RangeId range,
                                             const core::RangeOwner& owner) const;
  /// Returns the members that are to hold the range in a configuration; see ExchangeOracle.
  [[nodiscard]] std::vector<core::RangeOwner> holders(const core::Configuration& configuration,
                                                      core::RangeId range) const {
    return oracle_->holders(configuration, range);
  }
  [[nodiscard]] const SampleChecker& samples() const noexcept { return samples_; }
  [[nodiscard]] const ExchangeOracle& oracle() const noexcept { return *oracle_; }

  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  [[nodiscard]] std::size_t incarnations() const noexcept { return incarnations_.size(); }

 private:
  /// The progress of the worker of one incarnation.
  struct IncarnationProgress {
    core::Member member;
    /// The step at which the worker began, and its present step.
    core::Step first_step = 0;
    core::Step reached = 0;
    bool begun = false;
    /// True if the worker had begun before the node's last event.
    bool had_begun = false;
    bool done = false;
    /// True if it is done, and its exchange says that others have all of its updates.
    bool finished = false;
    /// True if it ended without a step, when no other worker was running that had begun.
    bool came_late = false;
    /// True if its node was told to leave.
    bool leaves = false;
  };
  /// The last permission to go on that one coordinator gave to one worker. It is checked only when
  /// the worker uses it, because a partitioned coordinator may send permissions that workers do not
  /// receive any more.
  struct Permission {
    /// The index of the coordinator's incarnation.
    std::size_t coordinator_index;
    core::Step step;
    /// The step at which the worker asks again: the next one, unless it runs for several steps.
    core::Step until;
    /// The indices of the incarnations of the workers whose steps the coordinator saw then.
    std::vector<std::size_t> view = {};
    /// Why these steps do not let the worker go on; empty if they do.
    std::string objection = {};
  };
  /// One worker that was asked in a draw, and its answer; absent before it answers.
  struct AskedWorker {
    std::size_t incarnation_index;
    /// True if the worker had begun when the question was sent.
    bool had_begun;
    std::optional<core::StepAnswer> answer;
  };
  /// The last draw of a worker: its number, and how many workers it must ask.
  struct Draw {
    std::uint64_t number = 0;
    std::size_t expected = 0;
    /// The step at which the worker has drawn.
    core::Step step = 0;
    /// If the barrier tunes itself: the step that the drawn workers must have reached.
    std::optional<core::Step> tuned_floor = std::nullopt;
    /// True if a barrier pass was checked against this draw: the next pass needs another draw.
    bool used = false;
    /// The step before which the worker runs because of this draw; 0 if it does not run.
    core::Step run_end = 0;
    std::vector<AskedWorker> asked;
  };
  /// The sequence numbers of the messages sent to one receiver, by which a message that the channel
  /// sends again is recognised.
  struct SentSequences {
    core::Incarnation incarnation = 0;
    std::uint64_t last = 0;
    /// Bit i is set if the number last - 1 - i was sent.
    std::uint64_t earlier = 0;
  };
  /// The incarnation that runs on a node, and what its last events have shown.
  struct NodeState {
    const MemberCore* core = nullptr;
    std::size_t incarnation_index = 0;
    /// True if the core was a member after its last event.
    bool is_member = false;
    core::Epoch epoch = 0;
    /// The configurations that the core knew before its last event, and after it.
    core::ConfigurationPtr previous_configuration = nullptr;
    core::ConfigurationPtr configuration = nullptr;
    /// The epoch that the core knew before its worker was held back for a new configuration
    /// (Worker::is_held()); absent if the worker has begun a step since.
    std::optional<core::Epoch> held_since = std::nullopt;
    /// The version of each range when it was last checked; absent if the node has none.
    std::vector<std::optional<ExchangeOracle::Version>> checked_ranges = {};
    Draw draw = {};
    /// The indices of the incarnations of the workers by whose steps the node's worker passed its
    /// last barrier.
    std::vector<std::size_t> view = {};
    /// By receiver and traffic class.
    std::vector<SentSequences> sent = std::vector<SentSequences>(std::size_t{2} * nodes_max);
  };

  /// Records a violation, unless there was one before.
  void report_violation(const std::string& what);
  [[nodiscard]] std::string incarnation_name(std::size_t incarnation_index) const;
  [[nodiscard]] std::optional<std::size_t> incarnation_index_of(
      NodeId id, core::Incarnation incarnation) const;
  /// The last step of the incarnation's worker that is known to be acknowledged for the range.
  [[nodiscard]] core::Step& acknowledged(std::size_t incarnation_index, core::RangeId range) {
    return acknowledged_[range * incarnations_max + incarnation_index];
  }
  /// Returns nullptr if no node has adopted a configuration of `epoch`.
  [[nodiscard]] const core::Configuration* configuration_of(core::Epoch epoch) const {
    return epoch < epochs_.size() ? epochs_[epoch].get() : nullptr;
  }
  void on_configuration(NodeState& node_state);
  void follow_worker(NodeId id, NodeState& node_state);
  [[nodiscard]] bool is_other_running(NodeId id, const core::Configuration& configuration) const;
  [[nodiscard]] bool is_full_holder(NodeId id, core::RangeId range) const;
  void expect_push_sums(core::RangeId range);
  void check_range(NodeId id, core::RangeId range, bool must_hold);
  void expect_means(NodeId id, core::RangeId range, std::span<const double> value);
  void check_round(NodeId id, core::RangeId range);
  [[nodiscard]] core::Step steps_ahead(std::size_t incarnation_index, NodeId id) const;
  [[nodiscard]] core::Step count_held(const MemberCore& core, std::size_t incarnation_index,
                                      core::RangeId range) const;
  void expect_held(std::size_t incarnation_index, core::RangeId range, core::Step step);
  void expect_own_updates(NodeId id, const core::Compute& compute);
  void expect_whole_updates(NodeId id, const core::Compute& compute);
  void expect_entry(NodeId id, const core::Worker& worker);
  void expect_samples(NodeId id, core::RangeId range);
  /// Returns false if the channel sends the message again.
  bool is_new(NodeState& node_state, const core::Envelope& envelope);
  template <class M>
  void check_message(NodeId, const core::Envelope&, const M&) {}
  void check_message(NodeId id, const core::Envelope& envelope, const core::Ack& ack);
  void check_message(NodeId id, const core::Envelope& envelope, const core::Value& value);
  void check_message(NodeId id, const core::Envelope& envelope, const core::Install& install);
  void check_message(NodeId id, const core::Envelope& envelope, const core::Forward& forward);
  void check_message(NodeId id, const core::Envelope& envelope, const core::Held& held);
  void check_message(NodeId id, const core::Envelope& envelope, const core::StepQuery& query);
  void check_message(NodeId id, const core::Envelope& envelope, const core::StepAnswer& answer);
  void check_message(NodeId id, const core::Envelope& envelope, const core::Arrived& arrived);
  void check_message(NodeId id, const core::Envelope& envelope, const core::WorkerStatus& status);
  void check_message(NodeId id, const core::Envelope& envelope, const core::Proceed& proceed);
  void check_message(NodeId id, const core::Envelope& envelope,
                     const core::CouncilMessage& message);
  /// Checks that the node is the range's primary in `owner_epoch`. `action` says what the node does
  /// in the range.
  void expect_primary(NodeId id, core::RangeId range, core::Epoch owner_epoch, const char* action);
  /// Returns the epoch that the node knew before the event in which its worker passed the barrier:
  /// before the node's last event or, if the worker was held, before the worker was held.
  [[nodiscard]] static core::Epoch epoch_of_pass(const NodeState& node_state);
  /// Returns true if this incarnation was the coordinator in one of the configurations that the
  /// node has known since epoch_of_pass().
  [[nodiscard]] bool is_coordinator(const core::Member& member, const NodeState& node_state) const;
  void check_begin(NodeId id, core::Step step);
  /// Checks, without a coordinator, that the worker's draw lets it pass the barrier at `step`.
  void check_pass(NodeId id, core::Step step);
  void see_all(NodeId id);
  /// Does the work of check_pass() for a rule that decides by paces: checks that the worker is in a
  /// run, or that its draw lets it pass.
  void check_pass_by_paces(NodeId id, core::Step step);
  /// Returns why the worker may not pass by the paces that it has seen in its draw; empty if it
  /// may.
  [[nodiscard]] std::string why_not_pass_by_paces(const NodeState& node_state,
                                                  core::Step step) const;
  /// True if only one worker was a member at some time since epoch_of_pass(). An event may adopt
  /// several configurations; one that the checker has not seen may have had only one worker.
  [[nodiscard]] bool was_alone(const NodeState& node_state) const;
  [[nodiscard]] bool is_sample_size(std::size_t drawn, std::size_t seen) const;
  /// Returns why the worker's draw has another size than its barrier demands; empty if it has not.
  [[nodiscard]] std::string why_not_sample(const NodeState& node_state) const;
  /// Requires: the node's core has a worker that asks others before it passes.
  [[nodiscard]] static const core::SampleGate& gate_of(const NodeState& node_state);
  /// Returns why the draw does not let a worker at `step` pass; empty if it does. `floor` is the
  /// step that all drawn workers must have reached; nullopt if the rule needs all steps to decide.
  [[nodiscard]] std::string why_not_pass(const NodeState& node_state, core::Step step,
                                         std::optional<core::Step> floor) const;
  /// Returns which worker of the draw has not answered that it has reached `floor`; empty if all
  /// have.
  [[nodiscard]] std::string why_below(const Draw& draw, core::Step floor) const;
  [[nodiscard]] static std::vector<std::size_t> view_of(const Draw& draw);
  /// Records that the coordinator `id` lets the worker of `to` go on.
  void record_permission(NodeId id, NodeId to, std::size_t incarnation_index,
                         const core::Proceed& proceed, const core::Configuration& configuration);
  /// Returns the indices of the incarnations of the workers whose steps the coordinator `id` uses
  /// now for the worker of `to`.
  [[nodiscard]] std::vector<std::size_t> view_of_coordinator(
      NodeId id, NodeId to, const core::Configuration& configuration) const;
  /// Returns why the workers in `view` do not let a worker go on from `step`; empty if they do.
  /// `floor`: as in why_not_pass().
  [[nodiscard]] std::string why_not_proceed(const core::Configuration& configuration,
                                            const std::vector<std::size_t>& view, core::Step step,
                                            std::optional<core::Step> floor) const;
  [[nodiscard]] static std::size_t other_worker_count(const core::Configuration& configuration);
  /// Returns true if the incarnation's worker has finished or is at `floor` or beyond.
  [[nodiscard]] bool has_reached(std::size_t incarnation_index, core::Step floor) const;

  Scenario scenario_;
  std::shared_ptr<const ExchangeOracle> oracle_;
  SampleChecker samples_;
  /// By incarnation index.
  std::vector<IncarnationProgress> incarnations_;
  std::vector<NodeState> nodes_;
  /// The configuration of each epoch, by epoch; null if no node has adopted one.
  std::vector<core::ConfigurationPtr> epochs_;
  std::vector<core::ConfigurationPtr> proposed_;
  /// By range and incarnation index; see acknowledged().
  std::vector<core::Step> acknowledged_;
  /// By incarnation index of the worker; one permission for each coordinator that let it go on.
  std::vector<std::vector<Permission>> permissions_;
  std::uint64_t steps_ = 0;
  std::uint64_t passes_ = 0;
  std::string violation_;
};

}  // namespace starling::sim
