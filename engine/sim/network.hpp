/// A simulated network: computes when each packet arrives, if at all, and keeps no packet itself.
/// Not thread-safe. The results are a function of the seed and of the calls so far.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/distributions/distribution.hpp"
#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::sim {

using core::Time;

/// A simulated node, numbered from 0. It is not the random core::NodeId of a process on it.
using NodeId = std::uint32_t;

/// The options of the link from one node to another, in one direction.
struct LinkOptions {
  /// The transit time, drawn for each packet: packets overtake one another if it varies.
  Distribution latency;
  /// The bandwidth. A packet occupies the link for its size divided by the bandwidth, after the
  /// packets that were sent before it. 0 means no limit: every packet departs at once.
  double bytes_per_second = 0;
  /// The share of packets that are lost.
  double loss = 0;
  /// The share of packets that arrive twice; a latency is drawn for each arrival.
  double duplication = 0;
  /// The share of packets that are delayed by `delay` in addition to their latency.
  double reordering = 0;
  Distribution delay = {};
};

/// Returns an error that names the option if a share is outside 0 to 1, if all packets are lost, or
/// if the bandwidth is negative or infinite.
[[nodiscard]] Result<void> check(const LinkOptions& options);

/// The times at which a packet arrives: none if it is lost, two if it is duplicated.
struct Arrivals {
  std::array<Time, 2> times{};
  std::size_t count = 0;

  [[nodiscard]] const Time* begin() const noexcept { return times.data(); }
  [[nodiscard]] const Time* end() const noexcept { return times.data() + count; }
};

class Network {
 public:
  /// The sender and the receiver.
  using Link = std::pair<NodeId, NodeId>;

  /// `defaults` are the options of all links that set() does not change. Requires: check(defaults).
  Network(const LinkOptions& defaults, std::uint64_t seed);

  /// Gives the link from `from` to `to` its own options. Requires: check(options).
  void set(NodeId from, NodeId to, const LinkOptions& options);

  /// Drops all packets that are sent over these links from now on; packets in flight still arrive.
  void block(std::span<const Link> links);
  void block(NodeId from, NodeId to) { blocked_.insert({from, to}); }
  /// Blocks all links between a node of `a` and a node of `b`, in both directions.
  void partition(std::span<const NodeId> a, std::span<const NodeId> b);
  /// Unblocks these links.
  void heal(std::span<const Link> links);
  void heal(NodeId from, NodeId to) { blocked_.erase({from, to}); }
  /// Unblocks all links.
  void heal() { blocked_.clear(); }
  [[nodiscard]] bool is_blocked(NodeId from, NodeId to) const {
    return blocked_.contains({from, to});
  }

  /// Sends a packet of `bytes` at `now`, and returns its arrivals. A packet from a node to itself
  /// always arrives at once. Requires: `now` is never earlier than in an earlier call.
  [[nodiscard]] Arrivals send(Time now, NodeId from, NodeId to, std::size_t bytes);

  /// The numbers of packets between different nodes so far. `lost` counts packets lost by chance or
  /// on a blocked link.
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    std::uint64_t duplicated = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  [[nodiscard]] const LinkOptions& options_of(const Link& link) const;
  /// Returns when the packet has left its sender.
  Time depart(Time now, const Link& link, const LinkOptions& options, std::size_t bytes);
  /// Draws when the packet arrives.
  Time draw_arrival(Time departed, const LinkOptions& options);

  LinkOptions default_options_;
  std::map<Link, LinkOptions> link_options_;
  std::set<Link> blocked_;
  /// By link of limited bandwidth: when its last packet has left its sender.
  std::map<Link, Time> free_at_;
  Random random_;
  Counts counts_;
};

}  // namespace starling::sim
