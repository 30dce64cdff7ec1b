#include "starling/engine/sim/chaos/chaos_job.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "starling/engine/sim/chaos/invariant_checker.hpp"

namespace starling::sim {
namespace {

/// Applies an update to a parameter: adds to `counts`; or hashes the number of the update into
/// `order`, which shows the order of all updates. Both are exact in doubles.
void merge(const core::MergeTarget& target, std::span<double> value,
           std::span<const double> update) {
  const bool is_order = target.parameter % 2 == 1;
  for (std::size_t i = 0; i < value.size(); ++i)
    value[i] = is_order ? std::fmod(31 * value[i] + update[i], 1'000'003) : value[i] + update[i];
}

}  // namespace

ChaosJob::ChaosJob(const Scenario& scenario) : scenario_(scenario) {
  core::Layout layout;
  const std::size_t count = 2 * incarnations_max + 2;
  auto start = std::make_shared<std::vector<core::RangeState>>();
  auto zeros = core::Buffer::make<double>(count);
  std::ranges::fill(zeros->as<double>(), 0.0);
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    const std::size_t p = layout.parameters.size();
    layout.parameters.push_back(
        {.name = "counts", .shape = {incarnations_max, 2}, .trained = false});
    layout.parameters.push_back({.name = "order", .shape = {1, 2}});
    layout.offsets.insert(layout.offsets.end(), {layout.size, layout.size + 2 * incarnations_max});
    layout.ranges.push_back(
        {layout.size,
         count,
         2,
         {{p, 0, 0, 2 * incarnations_max}, {p + 1, 2 * incarnations_max, 0, 2}}});
    layout.size += count;
    start->push_back({.range = r, .value = {zeros, 0, count, nullptr}, .slots = {}, .ledger = {}});
    plan_.push_back({r, nullptr});
  }
  layout_ = std::make_shared<const core::Layout>(std::move(layout));
  start_ = std::move(start);
  std::vector<core::Member> members;
  for (NodeId id = 0; id < scenario_.founders(); ++id) members.push_back(member(id, 1));
  first_configuration_ = std::make_shared<const core::Configuration>(core::first_configuration(
      std::move(members), scenario_.ranges, scenario_.copies, scenario_.has_coordinator()));
}

core::Member ChaosJob::member(NodeId id, core::Incarnation incarnation) const {
  if (!core::has_servers(scenario_.mode)) return {id, incarnation, true, true};
  if (id < scenario_.workers) return {id, incarnation, true, false};
  if (id < scenario_.workers + scenario_.servers) return {id, incarnation, false, true};
  if (id < scenario_.founders()) return {id, incarnation, false, false};  // the first coordinator
  return {id, incarnation, id % 2 == 0, id % 2 == 1};
}

core::MemberOptions ChaosJob::options(core::Member self, bool is_founder,
                                      std::vector<core::MemberId> seeds) const {
  core::MemberOptions options;
  options.self = self;
  options.mode = scenario_.mode;
  options.worker.last_step = scenario_.steps;
  options.worker.asks_for_plan = true;
  options.worker.barrier = scenario_.barrier;
  options.worker.recheck = scenario_.recheck;
  options.shard.layout = layout_;
  // If pushes are applied as they arrive, momentum shows their order. If they are applied in
  // rounds, they are merged one by one, because their mean would not keep the counts whole; then a
  // hash shows their order.
  if (scenario_.has_coordinator() && barrier::is_bsp(scenario_.barrier))
    options.shard.applier = core::merge_applier<double>(merge);
  else
    options.shard.applier = core::gradient_applier<double>(
        {.optimizer = models::Sgd{.lr = 0.125, .momentum = 0.75}, .schedule = {}, .batch = 1});
  options.shard.workers = scenario_.workers;
  options.members_max = nodes_max;
  options.initial_states = start_;
  if (is_founder) options.first_configuration = first_configuration_;
  options.seeds = std::move(seeds);
  options.council.copies = scenario_.copies;
  options.council.stuck_after = stuck_after;
  options.council.give_up_after = stuck_after / 2;
  return options;
}

core::Update ChaosJob::update(std::size_t slot, core::Step step) const {
  core::Update update;
  update.samples = scenario_.workers;  // with a batch of 1 its weight is 1, and counts are exact
  auto values = core::Buffer::make<double>(4);
  const auto number = static_cast<double>(1009 * slot + step + 1);
  std::ranges::copy(std::array{1.0, static_cast<double>(step + 1), number, number},
                    values->as<double>().begin());
  const std::shared_ptr<const core::Buffer> shared = std::move(values);
  const auto rows = std::make_shared<const std::vector<std::uint32_t>>(
      std::initializer_list<std::uint32_t>{static_cast<std::uint32_t>(slot), incarnations_max});
  for (core::RangeId r = 0; r < scenario_.ranges; ++r)
    update.parts.push_back({r, {shared, 0, 4, rows}});
  return update;
}

}  // namespace starling::sim
