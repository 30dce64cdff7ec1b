/// A network of virtual links: says when copies of a packet arrive, and keeps no packet itself. One
/// at a time; not thread-safe. The answers are a function of the seed and of the questions so far.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/distribution.hpp"
#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::sim {

using core::Time;

/// A machine, or whatever has links of its own; numbered from 0.
using NodeId = std::uint32_t;

/// One direction between two nodes.
struct LinkOptions {
  /// Time on the way of each packet, each its own: packets overtake one another where it varies.
  Distribution latency;
  /// A packet leaves when those before it have left, and takes its size over this. 0: no time.
  double bytes_per_second = 0;
  /// Shares of packets: lost; that come twice, each copy with its own latency; that are held up by
  /// `delay` beside their latency.
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

  /// Sets the link from `from` to `to` apart from the others. Requires: check(options).
  void set(NodeId from, NodeId to, const LinkOptions& options);

  /// What is sent over these links from now on is lost; what is under way still arrives.
  void cut(std::span<const Link> links);
  void cut(NodeId from, NodeId to) { cuts_.insert({from, to}); }
  /// Cuts both directions between every one of `a` and every one of `b`.
  void part(std::span<const NodeId> a, std::span<const NodeId> b);
  void heal(std::span<const Link> links);
  void heal(NodeId from, NodeId to) { cuts_.erase({from, to}); }
  /// Mends every cut.
  void heal() { cuts_.clear(); }
  [[nodiscard]] bool is_cut(NodeId from, NodeId to) const { return cuts_.contains({from, to}); }

  /// A packet of `bytes` is sent at `now`. A node reaches itself at once and always. Requires:
  /// `now` never falls from call to call.
  [[nodiscard]] Arrivals send(Time now, NodeId from, NodeId to, std::size_t bytes);

  /// Packets sent between different nodes so far, those of them that were lost, by chance or by a
  /// cut, and that came twice.
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    std::uint64_t duplicated = 0;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  [[nodiscard]] const LinkOptions& options_of(const Link& link) const;
  /// When the packet has left its sender.
  Time depart(Time now, const Link& link, const LinkOptions& options, std::size_t bytes);
  Time arrive(Time departed, const LinkOptions& options);

  LinkOptions every_;
  std::map<Link, LinkOptions> apart_;
  std::set<Link> cuts_;
  /// Links of limited bandwidth: when the last packet so far has left.
  std::map<Link, Time> free_at_;
  Random random_;
  Counts counts_;
};

}  // namespace starling::sim
