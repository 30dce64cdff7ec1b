#include "starling/engine/sim/chaos/exchange_oracle.hpp"

#include <algorithm>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/allreduce/optimizer_shards.hpp"
#include "starling/engine/sim/chaos/invariant_checker.hpp"

namespace starling::sim {
namespace {

using core::Configuration;
using core::RangeId;
using core::RangeOwner;

// --- owners and elastic -------------------------------------------------------------------------

bool equal(const core::Slice& a, const core::Slice& b) {
  return std::ranges::equal(a.as<double>(), b.as<double>());
}

bool equal(const core::Push& a, const core::Push& b) {
  const auto numbers = [](const core::Push& push) {
    return std::tuple{push.worker,  push.incarnation,   push.step,
                      push.samples, push.samples_total, push.is_join};
  };
  return numbers(a) == numbers(b) && equal(a.update, b.update);
}

/// Returns what differs between two states of a range; empty if they are the same.
std::string_view difference_of(const core::OwnerState& x, const core::OwnerState& y) {
  const core::RangeState& a = x.state;
  const core::RangeState& b = y.state;
  if (!equal(a.value, b.value)) return "their values";
  if (!equal(a.slots, b.slots)) return "the optimiser's slots";
  if (a.updates != b.updates) return "the updates applied";
  if (a.samples != b.samples) return "the samples seen";
  if (a.round != b.round) return "their round";
  if (a.ledger != b.ledger) return "their ledgers";
  if (!std::ranges::equal(x.queued_pushes, y.queued_pushes,
                          [](const auto& p, const auto& q) { return equal(p, q); }))
    return "the queued pushes";
  if (x.awaited != y.awaited) return "the awaited workers";
  return {};
}

/// The part of the oracle that is the same for each exchange E whose ranges have owners.
template <class E>
class OwnersOracle : public ExchangeOracle {
 public:
  std::vector<RangeOwner> holders(const Configuration& configuration,
                                  RangeId range) const override {
    return configuration.ranges[range].owners;
  }
  bool is_full(const MemberCore& member, RangeId range) const override {
    return replica(member).is_full_owner(range);
  }
  std::span<const double> values(const MemberCore& member, RangeId range) const override {
    if (!replica(member).shard().holds(range)) return {};
    return replica(member).shard().value<double>(range);
  }
  Version version(const MemberCore& member, RangeId range) const override {
    const core::Replica& owned = replica(member);
    return {owned.owner_epoch(range), owned.shard().updates(range), owned.is_full_owner(range)};
  }
  std::uint64_t samples(const MemberCore& member, RangeId range) const override {
    return replica(member).shard().full_state(range).state.samples;
  }
  bool is_behind(const MemberCore& member, const MemberCore& first, RangeId range) const override {
    return !replica(member).is_installed(range) ||
           replica(member).number(range) != replica(first).number(range);
  }
  std::string_view difference(const MemberCore& a, const MemberCore& b,
                              RangeId range) const override {
    return difference_of(replica(a).shard().full_state(range),
                         replica(b).shard().full_state(range));
  }

 protected:
  static const core::Replica& replica(const MemberCore& member) {
    return member.role<core::Training>().exchange<E>().replica();
  }
};

class OwnershipOracle final : public OwnersOracle<core::OwnershipExchange> {
 public:
  /// Also counts the queued pushes, which wait for their round.
  core::Step count_held(const MemberCore& member, RangeId range, std::size_t incarnation_index,
                        const core::Member& worker, core::Step first) const override {
    const core::Step applied =
        ExchangeOracle::count_held(member, range, incarnation_index, worker, first);
    const auto& queued_pushes = replica(member).shard().queued_pushes(range);
    if (queued_pushes.empty()) return applied;
    return applied + static_cast<core::Step>(std::ranges::count_if(
                         queued_pushes[worker.id], [&](const core::Push& push) {
                           return push.incarnation == worker.incarnation && !push.update.empty();
                         }));
  }
};

/// Each move of elastic averaging mixes the steps of several workers, so an owner's elements do not
/// show which steps it holds. Its ledger does.
class ElasticOracle final : public OwnersOracle<core::ElasticExchange> {
 public:
  explicit ElasticOracle(core::Step every) : every_(every) {}

  bool has_whole_updates() const override { return false; }
  core::Step step_written(const MemberCore& member) const override {
    return member.role<core::Training>().exchange<core::ElasticExchange>().moved_at();
  }
  /// The steps since the last move are lost.
  core::Step steps_lost() const override { return every_; }
  core::Step count_held(const MemberCore& member, RangeId range, std::size_t,
                        const core::Member& worker, core::Step first) const override {
    const core::Shard& shard = replica(member).shard();
    if (!shard.holds(range)) return 0;
    const core::LedgerEntry& entry = shard.ledger(range).at(worker.id);
    return entry.incarnation == worker.incarnation && entry.step > first ? entry.step - first : 0;
  }

 private:
  core::Step every_;
};

// --- copies of the whole model ------------------------------------------------------------------

/// The part of the oracle that is the same for each exchange E whose workers have copies of the
/// whole model.
template <class E>
class WholeModelsOracle : public ExchangeOracle {
 public:
  /// Every worker holds every range from its incarnation's beginning.
  std::vector<RangeOwner> holders(const Configuration& configuration, RangeId) const override {
    std::vector<RangeOwner> workers;
    for (const core::Member& member : configuration.members)
      if (member.works) workers.push_back({member.id, member.incarnation});
    return workers;
  }
  bool is_full(const MemberCore& member, RangeId range) const override {
    return exchange(member).has_copy(range);
  }
  std::span<const double> values(const MemberCore& member, RangeId range) const override {
    if (!exchange(member).has_copy(range)) return {};
    return exchange(member).template copy<double>(range);
  }
  std::uint64_t samples(const MemberCore& member, RangeId range) const override {
    return exchange(member).state(range).samples;
  }

 protected:
  static const E& exchange(const MemberCore& member) {
    return member.role<core::Training>().exchange<E>();
  }
};

// --- broadcast ----------------------------------------------------------------------------------

class BroadcastOracle final : public WholeModelsOracle<core::BroadcastExchange> {
 public:
  Version version(const MemberCore& member, RangeId range) const override {
    return {0, exchange(member).updates(range), true};
  }
  bool is_behind(const MemberCore& member, const MemberCore& first, RangeId range) const override {
    return !exchange(member).has_copy(range) || !exchange(first).has_copy(range) ||
           !difference(member, first, range).empty();
  }
  /// Copies apply updates in different orders, so the elements after those of the incarnations,
  /// which depend on the order of all updates, may differ.
  std::string_view difference(const MemberCore& a, const MemberCore& b,
                              RangeId range) const override {
    if (!std::ranges::equal(values(a, range).first(2 * incarnations_max),
                            values(b, range).first(2 * incarnations_max)))
      return "the updates that they contain";
    const core::RangeState x = exchange(a).state(range);
    const core::RangeState y = exchange(b).state(range);
    if (x.updates != y.updates) return "the updates applied";
    if (x.samples != y.samples) return "the samples seen";
    if (x.ledger != y.ledger) return "their ledgers";
    return {};
  }
};

// --- gossip and leader --------------------------------------------------------------------------

/// The part of the oracle that is the same for each exchange E in which copies differ.
template <class E>
class OwnModelsOracle : public WholeModelsOracle<E> {
 public:
  bool has_whole_updates() const override { return false; }
  /// Counts the steps of which the member knows.
  core::Step count_held(const core::MemberCore& member, RangeId, std::size_t,
                        const core::Member& worker, core::Step first) const override {
    for (const core::WorkerProgress& known : this->exchange(member).progress())
      if (known.worker == core::MemberIncarnation{worker.id, worker.incarnation})
        return known.step > first ? known.step - first : 0;
    return 0;
  }
  std::string_view difference(const core::MemberCore&, const core::MemberCore&,
                              RangeId) const override {
    return {};
  }
};

class GossipOracle final : public OwnModelsOracle<core::GossipExchange> {
 public:
  Version version(const MemberCore& member, RangeId range) const override {
    return {0, exchange(member).versions(range), true};
  }
  bool has_push_sums() const override { return true; }
  double weight(const MemberCore& member, RangeId range) const override {
    return exchange(member).has_copy(range) ? exchange(member).weight(range) : 0;
  }
  /// In the end, the first worker has the push-sum weight of all workers. Another worker that still
  /// has some weight is behind.
  bool is_behind(const MemberCore& member, const MemberCore& first, RangeId range) const override {
    return !exchange(member).has_copy(range) || exchange(member).is_sending() ||
           (&member != &first && weight(member, range) > 0);
  }
};

class LeaderOracle final : public OwnModelsOracle<core::LeaderExchange> {
 public:
  explicit LeaderOracle(core::Step global_every) : global_every_(global_every) {}

  Version version(const MemberCore& member, RangeId) const override {
    return {0, exchange(member).versions(), true};
  }
  bool has_means() const override { return true; }
  core::Step step_written(const MemberCore& member) const override {
    return exchange(member).reported_to_all();
  }
  /// After each `global_every` steps, a worker goes on only when all others have a report of them.
  core::Step steps_lost() const override { return global_every_; }
  bool is_behind(const MemberCore& member, const MemberCore&, RangeId range) const override {
    return !exchange(member).has_copy(range) || exchange(member).is_writing() ||
           !exchange(member).may_leave();
  }

 private:
  core::Step global_every_;
};

// --- allreduce and average ----------------------------------------------------------------------

/// The part of the oracle that is the same for allreduce and average: copies are equal after each
/// round.
template <class E>
class RoundsOracle : public WholeModelsOracle<E> {
 public:
  explicit RoundsOracle(core::Step every) : every_(every) {}

  ExchangeOracle::Version version(const core::MemberCore& member, core::RangeId) const override {
    return {this->exchange(member).synced_step(), this->exchange(member).own_steps(), true};
  }
  /// A worker goes on when its own copy contains the round, and makes all but the last step of the
  /// next one. If it dies then, the others may sum both rounds without it.
  core::Step steps_ahead() const override { return 2 * every_ - 1; }
  core::Step step_read(core::Step promised) const override { return promised - promised % every_; }
  std::optional<core::Step> round(const core::MemberCore& member) const override {
    if (!this->exchange(member).has_copy(0)) return std::nullopt;
    return this->exchange(member).synced_step();
  }
  bool is_behind(const core::MemberCore& member, const core::MemberCore& first,
                 core::RangeId) const override {
    return !round(member) || round(member) != round(first) ||
           this->exchange(member).own_steps() > 0;
  }
  std::string_view difference(const core::MemberCore& a, const core::MemberCore& b,
                              core::RangeId range) const override {
    const core::RangeState x = this->exchange(a).state(range);
    const core::RangeState y = this->exchange(b).state(range);
    if (!equal(x.value, y.value)) return "their values";
    if (x.samples != y.samples) return "the samples seen";
    if (x.round != y.round) return "their round";
    if (x.ledger != y.ledger) return "their ledgers";
    return {};
  }

 private:
  core::Step every_;
};

class AllreduceOracle final : public RoundsOracle<core::AllreduceExchange> {
 public:
  explicit AllreduceOracle(const core::AllreduceSettings& settings)
      : RoundsOracle(1),
        overlaps_(settings.overlaps),
        shards_optimizer_(settings.shards_optimizer()) {}

  /// If rounds overlap, a worker goes on when its copy contains the round before that of its last
  /// step.
  core::Step steps_ahead() const override { return overlaps_ ? 2 : 1; }
  core::Step own_steps_unread() const override { return overlaps_ ? 1 : 0; }
  core::Step step_read(core::Step promised) const override {
    return promised - std::min(own_steps_unread(), promised);
  }

  bool has_state(const core::MemberCore& member, core::RangeId range) const override {
    return !exchange(member).state(range).slots.empty();
  }
  bool keeps_state(const core::Configuration& configuration, core::MemberId member,
                   core::RangeId range) const override {
    if (!shards_optimizer_) return true;
    const auto workers = holders(configuration, range);
    const auto place = std::ranges::find(workers, member, &core::RangeOwner::id);
    return core::OptimizerShards{configuration}.keeps_state(
        static_cast<core::OptimizerShards::Rank>(place - workers.begin()), range);
  }
  /// All workers apply the same sums, so all workers that keep the optimizer state of a range have
  /// the same state. The chaos job (chaos_job.cpp) makes this state equal to the values.
  std::string_view difference(const core::MemberCore& a, const core::MemberCore& b,
                              core::RangeId range) const override {
    const core::RangeState x = exchange(a).state(range);
    const core::RangeState y = exchange(b).state(range);
    for (const core::RangeState* state : {&x, &y})
      if (!state->slots.empty() && !equal(state->slots, state->value))
        return "the state of the optimizer";
    if (x.updates != y.updates) return "the updates applied";
    return RoundsOracle::difference(a, b, range);
  }

 private:
  bool overlaps_;
  bool shards_optimizer_;
};

}  // namespace

core::Step ExchangeOracle::count_held(const MemberCore& member, RangeId range,
                                      std::size_t incarnation_index, const core::Member&,
                                      core::Step) const {
  return static_cast<core::Step>(values(member, range)[2 * incarnation_index]);
}

std::unique_ptr<const ExchangeOracle> make_oracle(std::string_view exchange) {
  if (core::exchange_type(exchange).name == core::GossipExchange::name)
    return std::make_unique<GossipOracle>();
  if (core::exchange_type(exchange).name == core::AllreduceExchange::name)
    return std::make_unique<AllreduceOracle>(core::parse_allreduce(exchange).value());
  if (core::exchange_type(exchange).name == core::AverageExchange::name)
    return std::make_unique<RoundsOracle<core::AverageExchange>>(
        core::average_every(core::exchange_argument(exchange)));
  if (core::exchange_type(exchange).name == core::ElasticExchange::name)
    return std::make_unique<ElasticOracle>(core::parse_elastic(exchange).value().every);
  if (core::exchange_type(exchange).name == core::LeaderExchange::name)
    return std::make_unique<LeaderOracle>(core::parse_leader(exchange).value().global_every);
  if (exchange == core::BroadcastExchange::name) return std::make_unique<BroadcastOracle>();
  STARLING_CHECK(exchange == core::OwnershipExchange::name);
  return std::make_unique<OwnershipOracle>();
}

}  // namespace starling::sim
