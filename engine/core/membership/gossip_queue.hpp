/// The nodes whose records a node has to send to others as news. News that was sent least often is
/// sent first, and the newest first among news sent equally often. Every operation takes O(log n)
/// for each node if the queue has n nodes.
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

  /// Calls `send(id)` for the first nodes in turn, until it returns false or news of `most` nodes
  /// was sent. Removes a node after news of it was sent `limit` times.
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
  /// How often the news was sent, a number that is lower the later the news was put, and the node.
  using Key = std::tuple<unsigned, std::uint64_t, NodeId>;

  std::uint64_t order_ = 0;
  std::set<Key> queue_;
  std::unordered_map<NodeId, Key> keys_;
};

}  // namespace starling::core
