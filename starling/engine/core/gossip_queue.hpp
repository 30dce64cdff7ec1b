/// News waiting to be told: which members to speak of next, those least spoken of first and the
/// newest of them before others. Every operation takes O(log of the queue's length).
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "starling/engine/core/membership_message.hpp"

namespace starling::core {

/// One at a time; not thread-safe.
class GossipQueue {
 public:
  /// There is news of `id`; older news of it is not told any more.
  void put(NodeId id) {
    remove(id);
    const Key key{0, ~order_++, id};
    queue_.insert(key);
    keys_.emplace(id, key);
  }

  void remove(NodeId id) {
    const auto known = keys_.find(id);
    if (known == keys_.end()) return;
    queue_.erase(known->second);
    keys_.erase(known);
  }

  /// Calls `tell(id)` for the first in turn, until it returns false or `most` were told. Whoever
  /// was told of `limit` times is taken out.
  template <class Send>
  void take(std::size_t most, unsigned limit, Send send) {
    std::vector<Key> sent;
    for (const Key& key : queue_) {
      if (sent.size() >= most || !send(std::get<2>(key))) break;
      sent.push_back(key);
    }
    for (const Key& key : sent) {
      queue_.erase(key);
      auto [sends, order, id] = key;
      keys_.erase(id);
      if (++sends >= limit) continue;
      queue_.insert({sends, order, id});
      keys_.emplace(id, Key{sends, order, id});
    }
  }

  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return queue_.size(); }
  [[nodiscard]] bool contains(NodeId id) const { return keys_.contains(id); }

 private:
  /// Times told, the later put the less, whom.
  using Key = std::tuple<unsigned, std::uint64_t, NodeId>;

  std::uint64_t order_ = 0;
  std::set<Key> queue_;
  std::unordered_map<NodeId, Key> keys_;
};

}  // namespace starling::core
