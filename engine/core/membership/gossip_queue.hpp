/// The queue of news that a node sends to others: the nodes whose records have changed. News that
/// was sent least often is sent first; among news that was sent equally often, the newest is sent
/// first. Every operation takes O(log n) for each node that it touches in a queue of n nodes.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "starling/engine/core/membership/membership_message.hpp"

namespace starling::core {

/// One call at a time; not thread-safe.
class GossipQueue {
 public:
  /// Adds news of `id`. It replaces older news of the same node.
  void put(NodeId id) {
    remove(id);
    const Key key{0, ~put_count_++, id};
    queue_.insert(key);
    keys_.emplace(id, key);
  }

  void remove(NodeId id) {
    const auto known = keys_.find(id);
    if (known == keys_.end()) return;
    queue_.erase(known->second);
    keys_.erase(known);
  }

  /// Calls `send(id)` for one node after the other, in the order of the queue, until `send` returns
  /// false or has returned true for `most` nodes. Removes a node for which it has returned true
  /// `limit` times.
  template <class Send>
  void take(std::size_t most, unsigned limit, Send send) {
    std::vector<Key> sent;
    for (const Key& key : queue_) {
      if (sent.size() >= most || !send(std::get<2>(key))) break;
      sent.push_back(key);
    }
    for (const Key& key : sent) {
      queue_.erase(key);
      auto [sends, put_order, id] = key;
      keys_.erase(id);
      if (++sends >= limit) continue;
      queue_.insert({sends, put_order, id});
      keys_.emplace(id, Key{sends, put_order, id});
    }
  }

  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return queue_.size(); }
  [[nodiscard]] bool contains(NodeId id) const { return keys_.contains(id); }

 private:
  /// How often the news was sent, a number that is lower for later put()s, and the node.
  using Key = std::tuple<unsigned, std::uint64_t, NodeId>;

  /// Counts the calls of put().
  std::uint64_t put_count_ = 0;
  std::set<Key> queue_;
  /// The key of each node in queue_.
  std::unordered_map<NodeId, Key> keys_;
};

}  // namespace starling::core
