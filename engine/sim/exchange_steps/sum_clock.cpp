#include "starling/engine/sim/exchange_steps/sum_clock.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <tuple>

#include "starling/base/check.hpp"

namespace starling::sim {
namespace {

constexpr double never_before = -std::numeric_limits<double>::infinity();

}  // namespace

Result<void> check_algorithm(const collective::Algorithm& algorithm, std::size_t members) {
  if (std::holds_alternative<collective::PackedTrees>(algorithm))
    return Error{collective::print(algorithm) +
                 " is made for the links of a topology, and all ports are alike at the step level; "
                 "valid: ring, tree, double-tree, doubling, halving, parts, groups:4, bcube:k=2"};
  auto fits = std::visit([&](const auto& chosen) { return chosen.check(members); }, algorithm);
  if (!fits) return std::move(fits).error().within(collective::print(algorithm));
  return {};
}

SumClock::SumClock(std::size_t members, double bytes, const collective::Network& network)
    : members_(members),
      vector_ns_(1e9 * bytes / network.bytes_per_second),
      latency_ns_(1e9 * network.latency_s),
      vector_bytes_(bytes) {
  STARLING_CHECK(members >= 2 && !network.topology);
}

SumClock::SumClock(const collective::Algorithm& algorithm, std::size_t members, double bytes,
                   const collective::Network& network)
    : SumClock(members, bytes, network) {
  STARLING_CHECK(check_algorithm(algorithm, members).ok());
  std::visit([&](const auto& chosen) { add(chosen); }, algorithm);
  finish();
}

SumClock SumClock::of_shards(std::size_t members, double bytes,
                             const collective::Network& network) {
  SumClock clock{members, bytes, network};
  clock.add(collective::Parts{});
  Messages to_backups{.pairs = {}, .share = 1 / static_cast<double>(members)};
  for (std::size_t member = 0; member < members; ++member)
    to_backups.pairs.push_back(
        {static_cast<Rank>(member), static_cast<Rank>((member + 1) % members)});
  clock.stages_.insert(clock.stages_.begin() + 1, std::move(to_backups));
  clock.finish();
  return clock;
}

void SumClock::finish() {
  for (const Stage& stage : stages_) count(stage);
  ready_.resize(lanes_ * members_);
  sends_until_.resize(ports_ * members_);
  receives_until_.resize(ports_ * members_);
}

// --- schedules ----------------------------------------------------------------------------------

void SumClock::add(const collective::Ring&) { stages_.emplace_back(Ring{members_, 1}); }

void SumClock::add(const collective::Parts&) {
  const AllToAll all{
      .members = members_, .base = members_, .unit = 1, .share = 1 / static_cast<double>(members_)};
  stages_.emplace_back(all);
  stages_.emplace_back(all);
}

void SumClock::add(const collective::Doubling&) {
  const std::size_t m = std::bit_floor(members_);
  Messages fold;
  Messages back;
  for (std::size_t i = m; i < members_; ++i) {
    fold.pairs.push_back({static_cast<Rank>(i), static_cast<Rank>(i - m)});
    back.pairs.push_back({static_cast<Rank>(i - m), static_cast<Rank>(i)});
  }
  if (m < members_) stages_.emplace_back(std::move(fold));
  for (std::size_t distance = 1; distance < m; distance *= 2)
    stages_.emplace_back(AllToAll{.members = m, .base = 2, .unit = distance, .share = 1});
  if (m < members_) stages_.emplace_back(std::move(back));
}

void SumClock::add(const collective::Halving&) {
  const std::size_t m = std::bit_floor(members_);
  if (m < members_) {
    Messages fold;
    for (std::size_t i = m; i < members_; ++i)
      fold.pairs.push_back({static_cast<Rank>(i), static_cast<Rank>(i - m)});
    stages_.emplace_back(std::move(fold));
  }
  double share = 1;
  for (std::size_t distance = m / 2; distance > 0; distance /= 2)
    stages_.emplace_back(AllToAll{.members = m, .base = 2, .unit = distance, .share = share /= 2});
  add_mirrored(stages_.size());
}

void SumClock::add(const collective::BCube& cube) {
  const std::size_t base = *cube.base(members_);
  ports_ = lanes_ = cube.k;
  double share = 1 / static_cast<double>(cube.k);
  for (std::size_t step = 0; step < cube.k; ++step) {
    share /= static_cast<double>(base);
    for (std::size_t thread = 0; thread < cube.k; ++thread) {
      const std::size_t digit = (thread + step) % cube.k;
      stages_.emplace_back(AllToAll{.members = members_,
                                    .base = base,
                                    .unit = collective::BCube::power(base, digit),
                                    .lane = thread,
                                    .port = digit,
                                    .share = share});
    }
  }
  add_mirrored(stages_.size());
}

void SumClock::add(const collective::Groups& groups) {
  for (std::size_t first = 0; first < members_; first += groups.size) {
    const auto inner =
        collective::BinomialTree{}.reduce(std::min(groups.size, members_ - first), 0);
    if (stages_.size() < inner.rounds.size()) stages_.resize(inner.rounds.size());
    for (std::size_t r = 0; r < inner.rounds.size(); ++r)
      for (const collective::Move& move : inner.rounds[r])
        std::get<Messages>(stages_[r])
            .pairs.push_back(
                {static_cast<Rank>(first + move.from), static_cast<Rank>(first + move.to)});
  }
  const std::size_t reduces = stages_.size();
  const std::size_t leaders = (members_ + groups.size - 1) / groups.size;
  if (leaders > 1) stages_.emplace_back(Ring{leaders, groups.size});
  add_mirrored(reduces);
}

template <class A>
void SumClock::add(const A& algorithm) {
  add_rounds(algorithm.reduce(members_, 0));
}

void SumClock::add_rounds(const collective::Schedule& reduce) {
  lanes_ = reduce.chunks.size();
  for (const collective::Round& round : reduce.rounds) {
    std::map<std::size_t, Messages> by_chunk;
    for (const collective::Move& move : round)
      by_chunk[move.chunk].pairs.push_back({move.from, move.to});
    for (auto& [chunk, messages] : by_chunk) {
      messages.lane = chunk;
      messages.share = reduce.chunks[chunk].share;
      stages_.emplace_back(std::move(messages));
    }
  }
  add_mirrored(stages_.size());
}

void SumClock::add_mirrored(std::size_t reduces) {
  for (std::size_t i = reduces; i-- > 0;) {
    Stage stage = stages_[i];
    if (auto* messages = std::get_if<Messages>(&stage))
      for (Pair& pair : messages->pairs) std::swap(pair.from, pair.to);
    stages_.push_back(std::move(stage));
  }
}

void SumClock::count(const Stage& stage) {
  std::uint64_t messages = 0;
  double share = 0;
  if (const auto* single = std::get_if<Messages>(&stage)) {
    messages = single->pairs.size();
    share = single->share;
  } else if (const auto* all = std::get_if<AllToAll>(&stage)) {
    messages = all->members * (all->base - 1);
    share = all->share;
  } else {
    const std::size_t n = std::get<Ring>(stage).members;
    messages = 2 * n * (n - 1);
    share = 1 / static_cast<double>(n);
  }
  messages_ += messages;
  bytes_ += static_cast<double>(messages) * share * vector_bytes_;
}

// --- times --------------------------------------------------------------------------------------

void SumClock::run(std::span<double> times) {
  STARLING_CHECK(times.size() == members_);
  for (std::size_t lane = 0; lane < lanes_; ++lane)
    for (std::size_t i = 0; i < members_; ++i) ready(lane, i) = times[i];
  for (const Stage& stage : stages_) std::visit([&](const auto& one) { run(one); }, stage);
  for (std::size_t lane = 0; lane < lanes_; ++lane)
    for (std::size_t i = 0; i < members_; ++i) times[i] = std::max(times[i], ready(lane, i));
}

/// Each message carries what its sender had before the round, so arrivals are stored after all.
void SumClock::run(const Messages& messages) {
  const double time = port_time(messages.share);
  arrivals_.clear();
  for (const Pair& pair : messages.pairs) {
    double& sends_until = sends_until_[port(pair.from, 0)];
    const double begin = std::max(ready(messages.lane, pair.from), sends_until);
    sends_until = begin + time;
    double& receives_until = receives_until_[port(pair.to, 0)];
    receives_until = std::max(begin + latency_ns_, receives_until) + time;
    arrivals_.push_back(receives_until);
  }
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    double& at = ready(messages.lane, messages.pairs[i].to);
    at = std::max(at, arrivals_[i]);
  }
}

void SumClock::run(const AllToAll& all) {
  for (std::size_t i = 0; i < all.members; ++i)
    if (i / all.unit % all.base == 0) exchange_in_group(all, i);
}

void SumClock::exchange_in_group(const AllToAll& all, std::size_t first) {
  const double all_times = port_time(all.share) * static_cast<double>(all.base - 1);
  double largest = never_before;
  double second = never_before;
  std::size_t last = first;
  const std::size_t end = first + all.base * all.unit;
  for (std::size_t i = first; i < end; i += all.unit) {
    double& sends_until = sends_until_[port(i, all.port)];
    const double begin = std::max(ready(all.lane, i), sends_until);
    sends_until = begin + all_times;
    if (begin > largest) {
      second = largest;
      largest = begin;
      last = i;
    } else {
      second = std::max(second, begin);
    }
  }
  for (std::size_t i = first; i < end; i += all.unit) {
    double& receives_until = receives_until_[port(i, all.port)];
    const double others = i == last ? second : largest;
    receives_until = std::max(others + latency_ns_, receives_until) + all_times;
    double& at = ready(all.lane, i);
    at = std::max(at, receives_until);
  }
}

/// The chunks go around once, to be summed; the sums then go around in the other direction.
void SumClock::run(const Ring& ring) {
  go_around(ring, true);
  go_around(ring, false);
}

/// Places count in the direction in which messages go. The member at place i begins its last
/// message, number m = n - 2, at m t + the maximum of x(i - k) + k latency over k <= m: so over all
/// members but the one at place i + 1.
void SumClock::go_around(const Ring& ring, bool is_forward) {
  const std::size_t n = ring.members;
  const auto member_at = [&](std::size_t place) {
    return (is_forward ? place : n - 1 - place) * ring.stride;
  };
  const double time = port_time(1 / static_cast<double>(n));
  const auto hops = [&](std::size_t places) { return static_cast<double>(places) * latency_ns_; };
  begin_.resize(n);
  largest_from_.assign(n + 2, never_before);
  for (std::size_t j = n; j-- > 0;) {
    const std::size_t member = member_at(j);
    begin_[j] = std::max(ready(0, member), sends_until_[port(member, 0)]) - hops(j);
    largest_from_[j] = std::max(largest_from_[j + 1], begin_[j]);
  }
  double largest_up_to = never_before;
  for (std::size_t i = 0; i < n; ++i) {
    largest_up_to = std::max(largest_up_to, begin_[i]);
    const double begin =
        i == n - 1 ? largest_from_[1] + hops(i)
                   : std::max(largest_up_to + hops(i), largest_from_[i + 2] + hops(i + n));
    sends_until_[port(member_at(i), 0)] = begin + static_cast<double>(n - 1) * time;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t member = member_at(i);
    double& receives_until = receives_until_[port(member, 0)];
    receives_until = std::max(receives_until + static_cast<double>(n - 1) * time,
                              sends_until_[port(member_at((i + n - 1) % n), 0)] + latency_ns_);
    ready(0, member) = std::max(ready(0, member), receives_until);
  }
}

}  // namespace starling::sim
