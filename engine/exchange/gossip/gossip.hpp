/// The gossip exchange: every worker has a copy of the model, computes with this copy, and after
/// each step sends the copy, with half of the worker's weight, to one other worker (stochastic
/// gradient push: Assran et al., arXiv 1811.10792; push-sum: Kempe et al., FOCS 2003). A worker's
/// traffic does not grow with the number of workers. docs/design/0023-gossip.md describes the
/// consequences.
///
/// A worker has, for each range, the de-biased values z and a push-sum weight w; the numerator x of
/// the papers is w z. A worker sends a part of its weight with its values, which does not change
/// its z. A worker that receives (w', z') has (w z + w' z') / (w + w') from then on. So messages
/// change neither the sum of w nor that of w z over all workers and messages in flight, whatever
/// the graph, the order and the delay of messages: each z tends to (sum of w z) / (sum of w). An
/// update changes the sum of w z; a worker that joins (with w = 1), leaves or dies changes both. If
/// values are sent with the precision of bfloat16, the rounding errors stay in the sender's copy,
/// so the sums do not change.
///
/// Step k counts when its update is in the worker's own copy and other workers have acknowledged
/// all that the worker sent them in the steps up to k - N, where N is the argument `lag`. So
/// another worker that sees the step may read a copy that does not contain the step's update. With
/// N > 0, messages travel while the worker computes (overlap SGP, section 4 of the paper). Barriers
/// bound how far the workers' steps differ; they promise nothing about reads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/engine/exchange/gossip/graph.hpp"
#include "starling/engine/exchange/gossip/messages.hpp"
#include "starling/engine/exchange/worker_model.hpp"

namespace starling::core {

/// To whom a worker sends, and when a step counts.
struct GossipSettings {
  GossipGraph graph = GossipGraph::exponential;
  /// When step k counts, PushSums of at most this many last steps, k included, may be
  /// unacknowledged: the argument `lag`, 0 to 64.
  Step steps_in_flight_max = 0;

  bool operator==(const GossipSettings&) const = default;
};

/// Reads "gossip:GRAPH,lag=N", in which both parts may be missing. Refuses an unknown graph, and a
/// lag above 64.
[[nodiscard]] Result<GossipSettings> parse_gossip(std::string_view name);

/// One member's part of the exchange; see the concept Exchange for the functions. Members that
/// are no workers have no copy.
class GossipExchange : public WorkerModel {
 public:
  using Messages = GossipMessages;
  using Context = GossipContext;
  static constexpr std::string_view name = "gossip";
  /// These are examples, the first of which is the default.
  static constexpr std::array<std::string_view, 4> arguments{"exponential", "ring", "random",
                                                             "lag=1"};
  static constexpr std::string_view summary =
      "every worker has the whole model, and after each step another one mixes it in";
  static constexpr bool can_round_to_bf16 = true;
  /// A running worker keeps at least this weight of each range: half of the mean weight, which is 1
  /// at the start. Without this bound, a worker that is faster than those that send to it would
  /// lose weight without end. Its updates change its own values in inverse proportion to its
  /// weight, so the values would leave the region in which the learning rate is stable. If workers
  /// die, the bound may become less (on_configuration()).
  static constexpr double first_weight_min = 0.5;

  explicit GossipExchange(const ExchangeOptions& options);

  /// Refuses an argument that parse_gossip() refuses.
  [[nodiscard]] static Result<void> check_argument(std::string_view argument);

  void write(const Context& context, const Write& write);
  void end(const Context& context, const EndWrites& end);

  void on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former);

  using WorkerModel::on;
  [[nodiscard]] bool on(const Context& context, MemberId from,
                        const std::shared_ptr<const PushSum>& sent);
  [[nodiscard]] bool on(const Context& context, MemberId from, const KnownProgress& known);
  [[nodiscard]] bool on(const Context& context, MemberId from, const GossipReceived& received);
  [[nodiscard]] bool on(const Context& context, MemberId from, const ModelReply& reply);
  void on(const Context& context, const Ended& ended);
  /// Tells the others to hand over nothing to this worker, and hands over this worker's weight once
  /// the worker has ended.
  void leave(const Context& context);
  [[nodiscard]] bool may_leave() const;

  /// Returns the push-sum weight. Requires: has_copy(range).
  [[nodiscard]] double weight(RangeId range) const { return push_sums_[range].weight; }
  /// True if another worker may not have taken yet what this one has sent.
  [[nodiscard]] bool is_sending() const { return !transfers_.empty(); }
  /// Returns how often the copy has changed. Requires: has_copy(range).
  [[nodiscard]] std::uint64_t versions(RangeId range) const { return push_sums_[range].versions; }

 private:
  /// The sender and the number (PushSum::step) of a PushSum that this worker has taken and not
  /// acknowledged yet.
  using Taken = std::pair<MemberIncarnation, Step>;
  /// This worker's push-sum of a range.
  struct PushSumState {
    /// 0 if this worker has no copy.
    double weight = 0;
    /// The least weight that the worker keeps while it runs; see first_weight_min.
    double weight_min = first_weight_min;
    /// How often the copy of the range has changed.
    std::uint64_t versions = 0;
    /// The messages that have come before the copies of all ranges, with their senders.
    std::vector<std::pair<MemberId, std::shared_ptr<const PushSum>>> waiting;
    /// The messages that have come after this worker's end, and that it has not handed over yet.
    std::vector<Taken> taken;
  };
  /// A message that its target has not acknowledged yet.
  struct Sent {
    Step number = 0;
    /// The messages of others whose weight it contains. This worker acknowledges them once it is
    /// acknowledged itself.
    std::vector<Taken> contains;
  };
  /// The messages that this worker sends to another one after a step, or when it has ended.
  struct Transfer {
    Step step = 0;
    MemberIncarnation target;
    /// The next range to send, and the messages that the target has not acknowledged yet.
    RangeId next = 0;
    std::vector<Sent> in_flight;
  };

  void apply(const Write& write);
  [[nodiscard]] std::optional<MemberIncarnation> draw_target(const Context& context,
                                                             Step step) const;
  /// Returns the number of the next message: the step, or a new number once the worker has ended.
  [[nodiscard]] Step next_number(Step step) { return ended_at_ ? ++last_number_ : step; }
  [[nodiscard]] std::size_t in_flight(const MemberIncarnation& target) const;
  void begin_transfer(const Context& context, const MemberIncarnation& target, Step step);
  void send_next(const Context& context);
  [[nodiscard]] bool has_weight() const;
  [[nodiscard]] double weight_to_send(RangeId range) const;
  void send(const Context& context, MemberId to, RangeId range, Step number, double weight);
  [[nodiscard]] Slice round_to_send(RangeId range, double weight);
  void mix_in(const Context& context, MemberId from, const PushSum& sent);
  void acknowledge(const Context& context, std::vector<Taken>& taken) const;
  [[nodiscard]] std::optional<MemberIncarnation> handover_target(
      const Configuration& configuration) const;
  void hand_over(const Context& context);
  [[nodiscard]] Ended ended_message() const;
  bool lower_weights(const Configuration& before, const Configuration& next);

  GossipSettings settings_;
  /// By range; empty if this member is no worker.
  std::vector<PushSumState> push_sums_;
  /// True once this worker has a copy of each range. Before that, it has no weight.
  bool has_all_ranges_ = false;
  /// The workers that have made their last step, as far as this one knows.
  std::set<MemberIncarnation> ended_;
  /// The workers among these whose members leave, with the steps in their Ended.
  std::map<MemberIncarnation, Step> leaving_;

  /// The step of the current write, until it counts.
  std::optional<Step> writing_;
  /// The messages that other workers may not have taken yet, in the order of the steps.
  std::vector<Transfer> transfers_;
  /// The worker's last step, once it has ended.
  std::optional<Step> ended_at_;
  /// The number of the last message, once the worker has ended.
  Step last_number_ = 0;
  bool is_leaving_ = false;
  /// True if the worker has ended, and handover_target() may lack a part of progress().
  bool must_hand_over_ = false;
};

}  // namespace starling::core
