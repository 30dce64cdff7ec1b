#include "starling/engine/sim/chaos_job.hpp"

#include <algorithm>
#include <utility>

#include "starling/engine/sim/witness.hpp"

namespace starling::sim {

ChaosJob::ChaosJob(const Scenario& scenario) : scenario_(scenario) {
  core::Layout layout;
  const std::size_t count = 2 * lives_max;
  auto start = std::make_shared<std::vector<core::RangeState>>();
  auto zeros = core::Buffer::make<double>(count);
  std::ranges::fill(zeros->as<double>(), 0.0);
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    layout.parameters.push_back({.name = "slots", .shape = {lives_max, 2}, .row_sparse = true});
    layout.offsets.push_back(layout.size);
    layout.ranges.push_back({layout.size, count, 2, {{r, 0, 0, count}}});
    layout.size += count;
    start->push_back({.range = r, .value = {zeros, 0, count, nullptr}, .slots = {}, .ledger = {}});
    plan_.push_back({r, nullptr});
  }
  layout_ = std::make_shared<const core::Layout>(std::move(layout));
  start_ = std::move(start);
  std::vector<core::Member> members;
  for (NodeId id = 0; id < scenario_.founders(); ++id) members.push_back(role(id, 1));
  first_ = std::make_shared<const core::Configuration>(
      core::first_configuration(std::move(members), scenario_.ranges, scenario_.copies));
}

core::Member ChaosJob::role(NodeId id, core::Incarnation life) const {
  if (!core::has_servers(scenario_.mode)) return {id, life, true, true};
  if (id < scenario_.workers) return {id, life, true, false};
  if (id < scenario_.workers + scenario_.servers) return {id, life, false, true};
  if (id < scenario_.founders()) return {id, life, false, false};  // the coordinator
  return {id, life, id % 2 == 0, id % 2 == 1};
}

core::NodeOptions<double> ChaosJob::options(core::Member self, bool founding,
                                            std::vector<core::WorkerId> doors) const {
  core::NodeOptions<double> options;
  options.self = self;
  options.mode = scenario_.mode;
  options.coordinator = scenario_.coordinator();
  options.worker.last = scenario_.steps;
  options.worker.plans = true;
  options.worker.barrier = scenario_.barrier;
  options.worker.recheck = scenario_.recheck;
  options.shard.layout = layout_;
  options.shard.applier = core::Merge<double>{
      [](const core::MergeSite&, std::span<double> value, std::span<const double> update) {
        for (std::size_t i = 0; i < value.size(); ++i) value[i] += update[i];
      }};
  options.shard.workers = scenario_.workers;
  options.shard.workers_max = nodes_max;
  options.start = start_;
  if (founding) options.first = first_;
  options.doors = std::move(doors);
  options.council.copies = scenario_.copies;
  return options;
}

core::Update ChaosJob::update(std::size_t slot, core::Step step) const {
  core::Update update;
  update.samples = 1;
  auto values = core::Buffer::make<double>(2);
  values->as<double>()[0] = 1;
  values->as<double>()[1] = static_cast<double>(step + 1);
  const std::shared_ptr<const core::Buffer> shared = std::move(values);
  const auto rows =
      std::make_shared<const std::vector<std::uint32_t>>(1, static_cast<std::uint32_t>(slot));
  for (core::RangeId r = 0; r < scenario_.ranges; ++r)
    update.parts.push_back({r, {shared, 0, 2, rows}});
  return update;
}

}  // namespace starling::sim
