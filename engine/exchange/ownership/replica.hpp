/// The ranges that one member owns together with others: a Shard, and the protocol that keeps its
/// copies equal (docs/design/0006-range-ownership.md).
///
/// Within a view the primary numbers what it takes in each range. Number 0 is the state that the
/// view begins with (Install); pushes follow in the primary's order (Forward). Owners report up to
/// which number they hold the range (Held), and the primary acknowledges a push to its worker once
/// every owner of the view holds it.
#pragma once

#include <deque>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::core {

/// Primary to the other owners: the state that `view` begins with.
struct Install {
  Epoch view;
  std::shared_ptr<const RangeState> state;

  [[nodiscard]] bool is_well_formed() const { return state != nullptr; }
  static constexpr auto fields(auto& m) { return std::tie(m.view, m.state); }
};
/// Primary to the other owners: what it has taken next in this view, counted from 1: a push, or in
/// bulk-synchronous jobs the end of a worker.
struct Forward {
  RangeId range;
  Epoch view;
  std::uint64_t number;
  std::shared_ptr<const Push> push;
  /// The worker that has ended, where there is no push.
  MemberId ended = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.view, m.number, m.push, m.ended);
  }
};
/// To the primary: the sender holds the range in this view up to and including `number`.
struct Held {
  RangeId range;
  Epoch view;
  std::uint64_t number;

  static constexpr auto fields(auto& m) { return std::tie(m.range, m.view, m.number); }
};
using ReplicaMessage = std::variant<Install, Forward, Held>;

/// Passed to every event. Acknowledgements and values go to `core`'s effects, messages to other
/// owners to `out`.
struct ReplicaContext {
  const Context& core;
  std::vector<std::pair<MemberId, ReplicaMessage>>& out;
};

template <class T>
struct ReplicaOptions {
  MemberId self = 0;
  /// The shard's options, without ranges.
  ShardOptions<T> shard;
  /// The state of each range when the job starts.
  std::shared_ptr<const std::vector<RangeState>> start;
};

/// One call at a time; not thread-safe. Messages between owners arrive once and in order, as
/// channels deliver them; messages of former views are refused. A function that returns false has
/// refused its message: send the sender the configuration.
template <class T>
class Replica {
 public:
  explicit Replica(ReplicaOptions<T> options);

  /// `next` follows the configuration of epoch `former`, perhaps with others between; `former` is 0
  /// where `next` is the first that this member knows. Requires: `next` names this member.
  void on_configuration(const ReplicaContext& context, const Configuration& next, Epoch former);

  /// Requires: the push comes from the worker that it names, a member in the incarnation that it
  /// names.
  [[nodiscard]] bool on(const ReplicaContext& context, const std::shared_ptr<const Push>& push);
  [[nodiscard]] bool on(const ReplicaContext& context, const Pull& pull);
  /// Requires: the message comes from the worker itself. Ignored unless the job is
  /// bulk-synchronous.
  void on(const ReplicaContext& context, const Ended& ended);
  [[nodiscard]] bool on(const ReplicaContext& context, MemberId from, const Install& install);
  [[nodiscard]] bool on(const ReplicaContext& context, MemberId from, const Forward& forward);
  [[nodiscard]] bool on(const ReplicaContext& context, MemberId from, const Held& held);

  /// The ranges of which this member holds every acknowledged update, ascending.
  [[nodiscard]] std::vector<RangeId> full_ranges() const;
  [[nodiscard]] bool is_full(RangeId range) const { return parts_[range].full; }
  [[nodiscard]] bool is_primary(RangeId range) const { return parts_[range].primary; }
  [[nodiscard]] Epoch view(RangeId range) const { return parts_[range].view; }
  /// True if this member holds the state that the range's view begins with.
  [[nodiscard]] bool is_installed(RangeId range) const { return parts_[range].installed; }
  /// The last number of the view that this member has sent, as primary, or holds.
  [[nodiscard]] std::uint64_t number(RangeId range) const { return parts_[range].number; }
  /// Counts the changes of full_ranges().
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

  [[nodiscard]] Shard<T>& shard() noexcept { return shard_; }
  [[nodiscard]] const Shard<T>& shard() const noexcept { return shard_; }

 private:
  struct Copy {
    MemberId id;
    bool installed;
    std::uint64_t held;
  };
  /// An Ack to send once all owners hold everything up to `number`.
  struct Pending {
    std::uint64_t number;
    MemberId worker;
    Ack ack;
  };
  struct Part {
    /// 0: not owned.
    Epoch view = 0;
    bool full = false;
    bool primary = false;
    /// True once the view's state has come; on the primary from the beginning.
    bool installed = false;
    MemberId leader = 0;
    /// The last number sent or held.
    std::uint64_t number = 0;
    std::vector<Copy> copies;
    std::deque<Pending> pending;
  };

  void give_up(RangeId range);
  void begin_view(const ReplicaContext& context, RangeId range, const Configuration& next,
                  bool founding);
  /// True where every owner in the view holds everything up to `number`.
  [[nodiscard]] static bool everywhere(const Part& part, std::uint64_t number);
  void acknowledge(const ReplicaContext& context, Part& part);

  ReplicaOptions<T> options_;
  Shard<T> shard_;
  std::vector<Part> parts_;
  std::uint64_t changes_ = 0;
};

extern template class Replica<float>;
extern template class Replica<double>;

}  // namespace starling::core
