/// A network of virtual links: computes when copies of a packet arrive, and keeps no packet itself.
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

/// A machine, or anything else that has links of its own; numbered from 0.
using NodeId = std::uint32_t;

/// One direction between two nodes.
struct LinkOptions {
  /// Transit time of a packet, drawn for each packet: packets overtake one another where it varies.
  Distribution latency;
  /// Bytes per second: a packet departs after those before it, and takes its size over this. 0: it
  /// departs at once.
  double bytes_per_second = 0;
  /// Shares of packets: that are lost; that come twice, each copy with its own latency; that are
  /// held up by `delay` on top of their latency.
  double loss = 0;
  double duplication = 0;
  double reordering = 0;
  Distribution delay = {};
};

/// Refuses shares outside 0 to 1, a loss of all packets and a negative or infinite bandwidth,
/// naming the option.
[[nodiscard]] Result<void> check(const LinkOptions& options);

/// When the copies of a packet arrive: none where it is lost, two where it is duplicated.
struct Arrivals {
  std::array<Time, 2> times{};
  std::size_t count = 0;

  [[nodiscard]] const Time* begin() const noexcept { return times.data(); }
  [[nodiscard]] const Time* end() const noexcept { return times.data() + count; }
};

class Network {
 public:
  using Link = std::pair<NodeId, NodeId>;

  /// Requires: check(every).
  Network(const LinkOptions& every, std::uint64_t seed);

  /// Gives the link from `from` to `to` its own options. Requires: check(options).
  void set(NodeId from, NodeId to, const LinkOptions& options);

  /// Loses all packets that are sent over these links from now on; packets in flight still arrive.
  void cut(std::span<const Link> links);
  void cut(NodeId from, NodeId to) { cuts_.insert({from, to}); }
  /// Partitions every one of `a` from every one of `b`, in both directions.
  void part(std::span<const NodeId> a, std::span<const NodeId> b);
  void heal(std::span<const Link> links);
  void heal(NodeId from, NodeId to) { cuts_.erase({from, to}); }
  /// Heals all links.
  void heal() { cuts_.clear(); }
  [[nodiscard]] bool is_cut(NodeId from, NodeId to) const { return cuts_.contains({from, to}); }

  /// Sends a packet of `bytes` at `now`, and returns its arrivals. A packet from a node to itself
  /// always arrives, at once. Requires: `now` never falls from call to call.
  [[nodiscard]] Arrivals send(Time now, NodeId from, NodeId to, std::size_t bytes);

  /// Counts of packets between different nodes so far: sent, lost, by chance or by a partition, and
  /// duplicated.
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
  Time arrive(Time departed, const LinkOptions& options);

  LinkOptions every_;
  std::map<Link, LinkOptions> apart_;
  std::set<Link> cuts_;
  /// By link of limited bandwidth: when its last packet so far has left.
  std::map<Link, Time> free_at_;
  Random random_;
  Counts counts_;
};

}  // namespace starling::sim
