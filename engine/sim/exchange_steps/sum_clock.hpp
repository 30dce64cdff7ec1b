/// Computes when members have a sum, from when each of them takes part in it. The time of the
/// computation does not grow with the number of moves of the schedule. Not thread-safe.
///
/// The model: all that one member sends another in a round of the schedule is one message. Let t be
/// the size of a message divided by the bandwidth. The message begins to leave once the sender has
/// received all that goes into it, and the sender's port is free; the port is free again after t.
/// The message begins to arrive one latency after it began to leave. It has arrived t after that,
/// and at the earliest t after the message before it has arrived. A port sends and receives
/// messages in the order of the schedule, also those of successive sums. It sends the messages of
/// one round first to the member that follows, then to the next member after that, and so on.
///
/// This is exact, and simulates no message, where all ports are alike:
/// - In each half of a ring, member i begins to send its message m (from 0) at m t + the maximum,
///   over 0 <= k <= m, of x(i - k) + k latency. Here x(j) is when member j begins to send its first
///   message. From member i - k the data has come over k hops, each of which adds the latency to
///   the time t of the port.
/// - Among b members that all send to each other, member i has received the b - 1 messages at
///   latency + (b - 1) t + the maximum of x(j) over j != i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/algorithms/algorithm.hpp"
#include "starling/engine/exchange/collective/cost.hpp"

namespace starling::sim {

class SumClock {
 public:
  /// `bytes` is the size of each member's vector. Requires: members >= 2, check_algorithm() accepts
  /// `algorithm`, and `network` has no topology. An infinite bandwidth is valid.
  SumClock(const collective::Algorithm& algorithm, std::size_t members, double bytes,
           const collective::Network& network);
  /// Returns the clock of core::sharded_schedule() with each backup at the next member.
  [[nodiscard]] static SumClock of_shards(std::size_t members, double bytes,
                                          const collective::Network& network);

  /// Makes the next sum. At the call, `times` has the time in nanoseconds at which each member
  /// takes part; at the return, the time at which the member has the sum. Requires: no member takes
  /// part before it has the sum before.
  void run(std::span<double> times);

  /// The messages of a sum, and their bytes, of all members together.
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  [[nodiscard]] double bytes() const noexcept { return bytes_; }

 private:
  using Rank = collective::Rank;

  /// Makes a clock without stages.
  SumClock(std::size_t members, double bytes, const collective::Network& network);

  struct Pair {
    Rank from;
    Rank to;
  };
  /// A round of single messages.
  struct Messages {
    std::vector<Pair> pairs;
    /// The part of the vector (lanes_) to which the messages belong.
    std::size_t lane = 0;
    /// The share of the vector that each message carries.
    double share = 1;
  };
  /// Groups of members whose numbers differ only in one digit, which is i / unit % base for member
  /// i. All members of a group send to each other. `lane` and `share` are as in Messages.
  struct AllToAll {
    std::size_t members;
    std::size_t base;
    std::size_t unit;
    std::size_t lane = 0;
    std::size_t port = 0;
    double share = 1;
  };
  /// A whole all-reduce in the ring of members 0, stride, 2 stride, ...
  struct Ring {
    std::size_t members;
    std::size_t stride;
  };
  /// Independent stages of one round share no lane.
  using Stage = std::variant<Messages, AllToAll, Ring>;

  void add(const collective::Ring&);
  void add(const collective::Doubling&);
  void add(const collective::Halving&);
  void add(const collective::Parts&);
  void add(const collective::Groups& groups);
  void add(const collective::BCube& cube);
  /// Adds the rounds of an algorithm that no overload above takes. All these algorithms have few
  /// chunks, so their schedules are small.
  template <class A>
  void add(const A& algorithm);
  void add_rounds(const collective::Schedule& reduce);
  /// Adds the first `reduces` stages, which reduce, a second time, in reverse order and direction:
  /// these send the sums back.
  void add_mirrored(std::size_t reduces);
  /// Prepares to run the stages.
  void finish();
  void count(const Stage& stage);

  void run(const Messages& messages);
  void run(const AllToAll& all);
  void run(const Ring& ring);
  void go_around(const Ring& ring, bool is_forward);
  void exchange_in_group(const AllToAll& all, std::size_t first);

  [[nodiscard]] double port_time(double share) const { return share * vector_ns_; }
  [[nodiscard]] double& ready(std::size_t lane, std::size_t member) {
    return ready_[lane * members_ + member];
  }
  [[nodiscard]] std::size_t port(std::size_t member, std::size_t port) const {
    return member * ports_ + port;
  }

  std::size_t members_;
  /// The time of the whole vector at a port, and the latency.
  double vector_ns_;
  double latency_ns_;
  double vector_bytes_;
  std::size_t ports_ = 1;
  /// The number of parts of the vector that do not depend on each other.
  std::size_t lanes_ = 1;
  std::vector<Stage> stages_;
  std::uint64_t messages_ = 0;
  double bytes_ = 0;

  /// When the member has all that it was to receive so far, by lane and member.
  std::vector<double> ready_;
  /// When the port is free, by member and port.
  std::vector<double> sends_until_;
  std::vector<double> receives_until_;
  /// Scratch memory.
  std::vector<double> arrivals_;
  std::vector<double> begin_;
  std::vector<double> largest_from_;
};

/// Refuses an algorithm whose check() refuses `members`, and packed trees, which are made for the
/// links of a topology.
[[nodiscard]] Result<void> check_algorithm(const collective::Algorithm& algorithm,
                                           std::size_t members);

}  // namespace starling::sim
