/// The gossip exchange: every worker has a copy of the model, computes with its own, and sends it,
/// with half of its weight, to one other worker after each step (stochastic gradient push: Assran
/// et al., arXiv 1811.10792; push-sum: Kempe et al., FOCS 2003). A worker's traffic does not grow
/// with the number of workers. docs/design/0023-gossip.md says what follows.
///
/// A worker has, for each range, the de-biased values z and a push-sum weight w; the numerator x of
/// the papers is w z. A worker sends a part of its weight with its values, which does not change
/// its z. A worker that receives (w', z') has (w z + w' z') / (w + w') from then on. So the sum of
/// w and that of w z over all workers and messages change by updates only, whatever the graph, the
/// order and the delay of messages: each z tends to (sum of w z) / (sum of w).
///
/// A step counts when its update is in the worker's own copy and the other worker has taken what it
/// was sent, so another worker that sees the step may read a copy that does not contain its update.
/// Barriers bound how far workers part; they promise nothing about what is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/engine/exchange/gossip/graph.hpp"
#include "starling/engine/exchange/gossip/messages.hpp"
#include "starling/engine/exchange/whole_models.hpp"

namespace starling::core {

/// One member's part of the exchange; see the concept Exchange for the functions. Members that do
/// not work have no copy.
class GossipExchange {
 public:
  using Messages = GossipMessages;
  using Context = GossipContext;
  static constexpr std::string_view name = "gossip";
  static constexpr std::span<const std::string_view> arguments = gossip_graphs;
  static constexpr std::string_view summary =
      "every worker has the whole model, and after each step another one mixes it in";
  static constexpr bool supports(Mode mode) { return mode == Mode::peer; }
  static constexpr bool gathers = false;
  static constexpr bool is_barrier = false;
  static constexpr ExchangeContent content = ExchangeContent::models;
  static constexpr bool places_ranges = false;
  /// A worker that runs keeps at least this weight of each range: half of the mean. Else a worker
  /// that is faster than those that send to it would have ever less, and the effect of its update
  /// on its own values is the inverse of it: they would leave the region in which the learning rate
  /// is stable. If workers die, the mean may become less (on_configuration()).
  static constexpr double first_weight_min = 0.5;

  explicit GossipExchange(ExchangeOptions options);

  void read(const Context& context, Read read);
  void write(const Context& context, const Write& write);
  void enter(const Context&, const Enter&) {}  // the exchange does not gather
  void end(const Context& context, const EndWrites& end);

  void on_configuration(const Context& context, const ConfigurationPtr& next, Epoch former);
  void on_timer(const Context& context);

  [[nodiscard]] bool on(const Context& context, MemberId from,
                        const std::shared_ptr<const PushSum>& sent);
  [[nodiscard]] bool on(const Context& context, MemberId from, const KnownProgress& known);
  [[nodiscard]] bool on(const Context& context, MemberId from, const GossipReceived& received);
  [[nodiscard]] bool on(const Context& context, MemberId from, const ModelRequest& request);
  [[nodiscard]] bool on(const Context& context, MemberId from, const ModelReply& reply);
  void on(const Context& context, const Ended& ended);
  void on(const Context& context, const Snapshot& request) const {
    observe_states(*this, context, request, copies_.size());
  }

  [[nodiscard]] static std::optional<MemberId> answerer(const Configuration& configuration,
                                                        RangeId) {
    return first_worker(configuration);
  }
  [[nodiscard]] bool answers_for(RangeId range) const { return has_copy(range) && is_answerer(); }
  [[nodiscard]] std::optional<Value> value(RangeId range, const Rows& rows) const;
  [[nodiscard]] RangeState state(RangeId range) const;
  [[nodiscard]] std::vector<WorkerProgress> progress() const { return progress_of(progress_); }
  [[nodiscard]] static ReadCounts read_counts() { return {}; }
  [[nodiscard]] std::vector<RangeId> full_ranges() const {
    return copied_ranges(*this, copies_.size());
  }
  [[nodiscard]] bool may_leave() const;
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

  /// True if this member has a copy of the range.
  [[nodiscard]] bool has_copy(RangeId range) const {
    return range < copies_.size() && copies_[range].values.value != nullptr;
  }
  /// Returns the de-biased values. Requires: has_copy(range), and that T is their type.
  template <class T>
  [[nodiscard]] std::span<const T> copy(RangeId range) const {
    return std::as_const(*copies_[range].values.value).template as<T>();
  }
  /// Returns the push-sum weight. Requires: has_copy(range).
  [[nodiscard]] double weight(RangeId range) const { return copies_[range].weight; }
  /// True if another worker may not have taken yet what this one has sent.
  [[nodiscard]] bool is_sending() const { return sending_.has_value(); }
  /// Returns how often the copy has changed. Requires: has_copy(range).
  [[nodiscard]] std::uint64_t versions(RangeId range) const { return copies_[range].versions; }

 private:
  struct Copy {
    /// Without buffers if this member has no copy.
    RangeValues values;
    double weight = 0;
    double weight_min = first_weight_min;
    std::uint64_t versions = 0;
    /// The messages that have come before the copy, with their senders.
    std::vector<std::pair<MemberId, std::shared_ptr<const PushSum>>> waiting;
  };
  /// The messages that this worker sends to another one after a step, or when it has ended.
  struct Sending {
    Step step = 0;
    MemberIncarnation target;
    /// The next range to send, and the number of messages that the other one has not taken yet.
    RangeId next = 0;
    std::size_t in_flight = 0;
  };

  [[nodiscard]] std::vector<MemberIncarnation> others() const {
    return other_workers(*configuration_, options_.self.id);
  }
  [[nodiscard]] MemberIncarnation self() const {
    return {options_.self.id, options_.self.incarnation};
  }
  [[nodiscard]] bool is_answerer() const {
    return first_worker(*configuration_) == options_.self.id;
  }
  void take_initial_states();
  void learn(const MemberIncarnation& worker, const WorkerSteps& progress);
  void learn(const std::vector<WorkerProgress>& workers);
  void apply(const Write& write);
  [[nodiscard]] std::optional<MemberIncarnation> draw_target(const Context& context,
                                                             Step step) const;
  void send_next(const Context& context);
  [[nodiscard]] bool has_weight() const;
  [[nodiscard]] double weight_to_send(RangeId range) const;
  void send(const Context& context, MemberId to, RangeId range, Step step, double weight);
  void add(const Context& context, MemberId from, const PushSum& sent);
  void hand_over(const Context& context);
  void request_copy(const Context& context);
  void ask(const Context& context, CopySource::Next next);
  void finish_read(const Context& context);

  ExchangeOptions options_;
  GossipGraph graph_;
  ConfigurationPtr configuration_;
  /// By range; empty if this member does not work.
  std::vector<Copy> copies_;
  /// How far each worker has got, as far as this one knows.
  StepsOfWorkers progress_;
  /// The workers that have made their last step, as far as this one knows.
  std::set<MemberIncarnation> ended_;

  /// A read that waits for copies.
  std::optional<Read> waiting_read_;
  std::optional<Sending> sending_;
  /// The worker's last step, once it has ended.
  std::optional<Step> ended_at_;

  /// True if the worker has ended, and the one that answers for the model may lack what it knows.
  bool has_news_ = false;

  /// Says which worker to ask for the copies that this one lacks.
  CopySource source_;
  /// How many copies have been installed.
  std::uint64_t changes_ = 0;
};

}  // namespace starling::core
