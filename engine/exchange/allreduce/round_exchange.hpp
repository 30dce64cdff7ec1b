/// Rounds in which all workers sum, for exchanges in which every worker has a copy of the model:
/// the allreduce exchange sums updates, the average exchange sums the changes of copies. After a
/// round all copies are equal, to the last bit. docs/design/0024-allreduce.md describes the
/// consequences.
///
/// A round is RoundExchangeOptions::every steps of each worker. It counts for a worker as soon as
/// the worker's copy contains the updates of all workers, each exactly once. A worker that has
/// ended takes part in the sums without an update.
///
/// If rounds overlap with steps, a step counts as soon as the copy contains the round before: then
/// the worker makes its next step while its update is summed.
///
/// The workers of the configuration sum. A new configuration aborts a sum that is not complete, and
/// each worker reports to the others the last round that it has completed (RoundReport). A worker
/// that joins, or lacks the latest of these rounds, gets the model from one that has it. Then all
/// sum the next round; a worker keeps its update until its copy contains it.
///
/// The state of the optimizer may be in shards (optimizer_shards.hpp): then each worker has the
/// state of some ranges only. When the configuration changes, it gets the state that its shards
/// lack.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/engine/exchange/allreduce/catch_up.hpp"
#include "starling/engine/exchange/allreduce/messages.hpp"
#include "starling/engine/exchange/allreduce/round_sum.hpp"
#include "starling/engine/exchange/whole_models.hpp"

namespace starling::core {

/// Says what is summed, and when.
struct RoundExchangeOptions {
  /// RoundSumOptions::algorithm.
  std::string algorithm{};
  /// The number of steps of a round. 1 unless `sums_changes`. At most sum_steps_max.
  Step every = 1;
  /// False: a step's update reaches a copy only in the sum of all, to which the optimizer is
  /// applied. True: a worker applies its updates to its own copy with an optimizer of its own, and
  /// all sum how their copies have changed since the last round.
  bool sums_changes = false;
  /// True: a worker makes its next step while its last update is summed. The step reads a copy
  /// without that round, however fast the sum is. Requires: !sums_changes.
  bool overlaps = false;
  /// True: the state of the optimizer is in shards. Requires: !sums_changes.
  bool shards_optimizer = false;
  /// RoundSumOptions::buckets. A worker takes part in the sum of a bucket as soon as it has the
  /// parts of the bucket. Empty if `sums_changes` or `overlaps`.
  std::vector<Bucket> buckets{};
};

/// One member's part of the exchange; see the concept Exchange for the functions. Members that
/// are no workers have no copy.
class RoundExchange {
 public:
  using Messages = AllreduceMessages;
  using Context = AllreduceContext;
  static constexpr bool supports(Mode mode) { return mode == Mode::peer; }
  static constexpr bool gathers = false;
  static constexpr bool is_barrier = true;
  static constexpr bool places_ranges = false;
  static constexpr bool can_round_to_bf16 = true;
  /// Refuses more workers than a sum can have.
  [[nodiscard]] static Result<void> check_workers(std::string_view name, std::size_t workers);

  RoundExchange(ExchangeOptions options, RoundExchangeOptions rounds);

  void read(const Context& context, const Read& read);
  void write(const Context& context, Write write);
  void write_parts(const Context& context, WriteParts write);
  void enter(const Context& context, const Enter& enter);
  void end(const Context& context, const EndWrites& end);

  void on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former);
  void on_timer(const Context&) {}

  [[nodiscard]] bool on(const Context& context, MemberId from, const SumPiece& piece);
  [[nodiscard]] bool on(const Context& context, MemberId from, const SumAck& ack);
  [[nodiscard]] bool on(const Context& context, MemberId from, const RoundReport& report);
  [[nodiscard]] bool on(const Context& context, MemberId from, const CatchUpRequest& request);
  [[nodiscard]] bool on(const Context& context, MemberId from, const CatchUpReply& reply);
  void on(const Context&, const Ended&) {}
  void on(const Context& context, const Snapshot& request);

  [[nodiscard]] static std::optional<MemberId> answerer(std::string_view,
                                                        const Configuration& configuration,
                                                        RangeId) {
    return first_worker(configuration);
  }
  [[nodiscard]] bool answers_for(RangeId range) const {
    return has_copy(range) && has_state(range) && is_answerer(range);
  }
  [[nodiscard]] std::optional<Value> value(RangeId range, const Rows& rows) const;
  [[nodiscard]] RangeState state(RangeId range) const;
  [[nodiscard]] std::vector<WorkerProgress> progress() const;
  [[nodiscard]] static ReadCounts read_counts() { return {}; }
  [[nodiscard]] std::vector<RangeId> full_ranges() const {
    return copied_ranges(*this, options_.layout->ranges.size());
  }
  [[nodiscard]] bool may_leave() const { return !options_.self.works || others_have_rounds_; }
  [[nodiscard]] std::uint64_t full_ranges_version() const { return full_ranges_version_; }

  /// True if this member has a copy of the range, and so of all.
  [[nodiscard]] bool has_copy(RangeId range) const { return range < model_.size(); }
  /// Returns the values with which the worker computes. Requires: has_copy(range), and that T is
  /// their type.
  template <class T>
  [[nodiscard]] std::span<const T> copy(RangeId range) const {
    return std::as_const(*model_[range].value).template as<T>();
  }
  /// Returns the last step of the last round that this member's copy contains.
  [[nodiscard]] Step synced_step() const { return synced_step_; }
  /// Returns a hash of what is equal in the copies of all workers after synced_step().
  [[nodiscard]] CopyHash copy_hash() const;
  /// Returns the number of the worker's steps since the last round, which only its own copy
  /// contains.
  [[nodiscard]] Step own_steps() const { return own_.steps; }
  /// True if this member has an update that does not count yet.
  [[nodiscard]] bool is_writing() const { return write_.has_value(); }
  /// True if this member has an update that counts, and that its copy does not contain yet.
  [[nodiscard]] bool has_overlapped_write() const { return overlapped_write_.has_value(); }

 private:
  /// The worker's steps since the last round, and their samples. Only its own copy contains them.
  struct OwnSteps {
    Step steps = 0;
    std::uint64_t samples = 0;
  };

  [[nodiscard]] bool has_model() const { return !model_.empty(); }
  /// Returns the last step of the next round.
  [[nodiscard]] Step next_round_step() const {
    return (synced_step_ / rounds_.every + 1) * rounds_.every;
  }
  [[nodiscard]] bool is_current(Epoch epoch) const { return epoch == configuration_->epoch; }
  /// True if this member is to have the state of the optimizer for the range.
  [[nodiscard]] bool keeps_state(RangeId range) const {
    return !shards_ || shards_->keeps_state(rank_, range);
  }
  /// True if this member has the state of the optimizer for the range after its last round.
  /// Requires: has_model().
  [[nodiscard]] bool has_state(RangeId range) const;
  /// True if this member is the answerer of the range, even if it has no copy or state of it yet.
  [[nodiscard]] bool is_answerer(RangeId range) const;
  void take_initial_states();
  void apply_to_own_copy(const Write& write);
  [[nodiscard]] Update own_changes() const;
  void start_sum(RoundSum::Sends& out);
  void reset_model_to_base();
  void begin_epoch(const Context& context);
  void resume_if_all_reported(const Context& context);
  [[nodiscard]] RoundReport report() const;
  void ask_for_next_range(const Context& context);
  void install(const Context& context);
  void install_values();
  /// True if the worker makes a step with the present copy, or is about to.
  [[nodiscard]] bool uses_copy() const { return overlapped_write_ && !write_ && !has_ended_; }
  /// Returns what this member gives to the next sum; nullptr if its worker has no whole update for
  /// it.
  [[nodiscard]] const Write* next_write() const;
  /// True if the worker has computed the parts of the bucket that is to be summed next. The last
  /// bucket waits for the whole update, so that no round is complete before it.
  [[nodiscard]] bool has_next_parts() const {
    const RangeId first = sum_->next_bucket().first;
    return early_ && first > 0 && early_->parts.first <= first;
  }
  void go_on(const Context& context);
  template <class Event>
  void run_sum(const Context& context, Event event);
  /// The steps and samples of a round.
  struct RoundLength {
    Step steps = 0;
    std::uint64_t samples = 0;
  };
  /// Adds the round of the sum to the progress of the workers.
  [[nodiscard]] RoundLength add_round_to(StepsOfWorkers& progress) const;
  void complete_round(const Context& context);
  void answer_worker(const Context& context);
  void answer_pending_snapshot(const Context& context);

  ExchangeOptions options_;
  RoundExchangeOptions rounds_;
  ApplierPtr sum_applier_;
  ConfigurationPtr configuration_;
  /// The worker's copy, by range; empty if this member has none.
  std::vector<RangeValues> model_;
  /// If changes are summed, the values after the last round, with the state that this worker's
  /// optimizer had then.
  std::vector<RangeValues> base_;
  /// The last step of the last round.
  Step synced_step_ = 0;
  /// How far each worker had got at the end of the last round.
  StepsOfWorkers progress_;
  OwnSteps own_;
  /// Grows with each copy from another member.
  std::uint64_t full_ranges_version_ = 0;

  /// The worker's write, until it counts; without its update if the copy contains the update
  /// already.
  std::optional<Write> write_;
  /// The parts that the worker has of the update that it computes; absent once the update is whole.
  std::optional<WriteParts> early_;
  /// If rounds overlap with steps: the write that counts, until a round contains it.
  std::optional<Write> overlapped_write_;
  /// True if the worker waits to enter.
  bool is_entering_ = false;
  bool has_ended_ = false;

  /// The workers of the configuration, ascending.
  std::vector<MemberIncarnation> workers_;
  /// This member's position in workers_.
  collective::Rank rank_ = 0;
  /// nullptr unless the state of the optimizer is in shards.
  std::shared_ptr<const OptimizerShards> shards_;
  /// The state of this member's shards after the round that it aborted when the configuration last
  /// changed: another worker may have completed that round before.
  ShardState next_state_;
  /// The reports of the other workers, as far as they have come in this epoch.
  RoundReports reports_;
  std::optional<CatchUp> catch_up_;
  std::unique_ptr<RoundSum> sum_;
  /// nullptr unless elements are rounded before they are sent.
  std::shared_ptr<SumResidual> residual_;
  /// True if this member can sum: it has the latest round that any worker of the configuration had
  /// completed when this configuration began, and the state of its shards after that round.
  bool is_ready_ = false;
  /// True if a sum is complete in which this member took part after its worker had ended: so all
  /// others have the rounds before it.
  bool others_have_rounds_ = false;
  /// True if a sum without any update has shown that all workers have ended.
  bool have_all_ended_ = false;
  Snapshot pending_snapshot_;
};

}  // namespace starling::core
