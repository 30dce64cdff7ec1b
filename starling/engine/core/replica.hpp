/// The ranges that one member owns, beside others that own them too: a Shard, and what keeps its
/// copies equal. The protocol: docs/design/0006-range-ownership.md.
///
/// Within a view the primary numbers what it takes in each range. Number 0 is the state that the
/// view begins with (Install), what follows are pushes in its order (Forward). Owners say how far
/// they hold it (Held), and the primary acknowledges to workers what every owner of the view holds.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/configuration.hpp"
#include "starling/engine/core/shard.hpp"

namespace starling::core {

/// Primary to the other owners: the state that `view` begins with.
struct Install {
  Epoch view;
  std::shared_ptr<const RangeState> state;
};
/// Primary to the other owners: what it has taken next in this view, counted from 1: a push, or in
/// bulk-synchronous jobs the end of a worker.
struct Forward {
  RangeId range;
  Epoch view;
  std::uint64_t number;
  std::shared_ptr<const Push> push;
  /// Where there is no push.
  MemberId ended = 0;
};
/// To the primary: I hold the range in this view up to and with `number`.
struct Held {
  RangeId range;
  Epoch view;
  std::uint64_t number;
};
using ReplicaMessage = std::variant<Install, Forward, Held>;

/// What every event brings. Acknowledgements and values go to `core`'s effects.
struct ReplicaContext {
  const Context& core;
  std::vector<std::pair<MemberId, ReplicaMessage>>& out;
};

template <class T>
struct ReplicaOptions {
  MemberId self = 0;
  /// Without ranges.
  ShardOptions<T> shard;
  /// What each range holds when the job starts.
  std::shared_ptr<const std::vector<RangeState>> start;
};

/// One at a time; not thread-safe. Messages between owners arrive once and in order, as channels
/// deliver them; those of former views are dropped. Whatever returns false was refused: the sender
/// is to be told the configuration.
template <class T>
class Replica {
 public:
  explicit Replica(ReplicaOptions<T> options);

  /// `next` follows the configuration of epoch `former`, perhaps with others between; 0: it is the
  /// first that this member knows. Requires: it names this member.
  void on_configuration(const ReplicaContext& context, const Configuration& next, Epoch former);

  /// Requires: the push is its sender's own, and the sender a member in the incarnation it names.
  [[nodiscard]] bool on(const ReplicaContext& context, const std::shared_ptr<const Push>& push);
  [[nodiscard]] bool on(const ReplicaContext& context, const Pull& pull);
  /// Requires: the worker's own word. Bulk-synchronous jobs only.
  void on(const ReplicaContext& context, const Ended& ended);
  [[nodiscard]] bool on(const ReplicaContext& context, MemberId from, const Install& install);
  [[nodiscard]] bool on(const ReplicaContext& context, MemberId from, const Forward& forward);
  [[nodiscard]] bool on(const ReplicaContext& context, MemberId from, const Held& held);

  /// The ranges of which all that was acknowledged is held here, ascending.
  [[nodiscard]] std::vector<RangeId> full() const;
  [[nodiscard]] bool is_full(RangeId range) const { return parts_[range].full; }
  [[nodiscard]] bool is_primary(RangeId range) const { return parts_[range].primary; }
  [[nodiscard]] Epoch view(RangeId range) const { return parts_[range].view; }
  /// The state that its view begins with is held here.
  [[nodiscard]] bool is_installed(RangeId range) const { return parts_[range].installed; }
  /// The last number of the view that was sent, or is held.
  [[nodiscard]] std::uint64_t number(RangeId range) const { return parts_[range].number; }
  /// Counts the changes of full().
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

  [[nodiscard]] Shard<T>& shard() noexcept { return shard_; }
  [[nodiscard]] const Shard<T>& shard() const noexcept { return shard_; }

 private:
  struct Copy {
    MemberId id;
    bool installed;
    std::uint64_t held;
  };
  /// To be acknowledged when everything up to `number` is held by all.
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
    /// The view's state has come; on the primary from the beginning.
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
  /// Everyone in the view holds everything up to `number`.
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
