#include "starling/engine/sim/chaos/chaos_job.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
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

/// Applies an update to a parameter, `counts` or `order`: adds it.
void add(const core::MergeTarget&, std::span<double> value, std::span<const double> update) {
  std::ranges::transform(value, update, value.begin(), std::plus<>{});
}

/// Applies updates with momentum, so that the result shows their order. Adds every update with
/// weight 1, so that counts are exact. Adds 64 times the weight that was asked for to the last
/// element of `order`, so that owners that weigh an update differently differ there.
class MomentumApplier final : public core::Applier {
 public:
  [[nodiscard]] std::size_t element_bytes() const noexcept override {
    return inner_->element_bytes();
  }
  [[nodiscard]] std::size_t slot_count() const noexcept override { return inner_->slot_count(); }
  [[nodiscard]] double weight(std::uint32_t, std::size_t workers) const noexcept override {
    return static_cast<double>(workers);
  }
  void apply(const core::Layout& layout, core::RangeId range, core::RangeValues& values,
             const core::Slice& update, double weight) const override {
    inner_->apply(layout, range, values, update, 1);
    values.value->as<double>().back() += 64 * weight;
  }
  void apply_round(const core::Layout& layout, core::RangeId range, core::RangeValues& values,
                   std::span<const core::RoundPart> round,
                   core::RoundScratch& scratch) const override {
    inner_->apply_round(layout, range, values, round, scratch);
  }

 private:
  core::ApplierPtr inner_ = core::gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 0.125, .momentum = 0.75}, .schedule = {}, .batch = 1});
};

/// Merges updates into the state of the optimizer, and makes the values equal to it. So a worker
/// that has lost the state loses the counts, too.
class StateApplier final : public core::Applier {
 public:
  [[nodiscard]] std::size_t element_bytes() const noexcept override {
    return inner_->element_bytes();
  }
  [[nodiscard]] std::size_t slot_count() const noexcept override { return 1; }
  [[nodiscard]] double weight(std::uint32_t samples, std::size_t workers) const noexcept override {
    return inner_->weight(samples, workers);
  }
  void apply(const core::Layout& layout, core::RangeId range, core::RangeValues& values,
             const core::Slice& update, double weight) const override {
    std::swap(values.value, values.slots);
    inner_->apply(layout, range, values, update, weight);
    values.slots = core::Buffer::copy_of(std::as_const(*values.value).as<double>());
  }
  void apply_round(const core::Layout& layout, core::RangeId range, core::RangeValues& values,
                   std::span<const core::RoundPart> round, core::RoundScratch&) const override {
    for (const core::RoundPart& part : round)
      if (!part.update.empty()) apply(layout, range, values, part.update, 1);
  }
  [[nodiscard]] bool averages_rounds() const noexcept override { return inner_->averages_rounds(); }

 private:
  core::ApplierPtr inner_ = core::merge_applier<double>(merge);
};

/// Adds updates to the counts. Its weight() is 1 / workers: GossipExchange multiplies it by the
/// number of workers, so each update is added to the push-sum numerator with weight 1.
/// LeaderExchange chooses the weight 1 itself.
class CountingApplier final : public core::Applier {
 public:
  [[nodiscard]] std::size_t element_bytes() const noexcept override {
    return inner_->element_bytes();
  }
  [[nodiscard]] std::size_t slot_count() const noexcept override { return 0; }
  [[nodiscard]] double weight(std::uint32_t, std::size_t workers) const noexcept override {
    return 1 / static_cast<double>(workers);
  }
  void apply(const core::Layout& layout, core::RangeId range, core::RangeValues& values,
             const core::Slice& update, double weight) const override {
    inner_->apply(layout, range, values, update, weight);
  }
  void apply_round(const core::Layout&, core::RangeId, core::RangeValues&,
                   std::span<const core::RoundPart>, core::RoundScratch&) const override {}

 private:
  core::ApplierPtr inner_ = core::gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 0.125}, .schedule = {}, .batch = 1});
};

}  // namespace

ChaosJob::ChaosJob(const Scenario& scenario) : scenario_(scenario) {
  core::Layout layout;
  const std::size_t count = 2 * incarnations_max + 2;
  auto initial_states = std::make_shared<std::vector<core::RangeState>>();
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
    initial_states->push_back(
        {.range = r, .value = {zeros, 0, count, nullptr}, .slots = {}, .ledger = {}});
    plan_.push_back({r, nullptr});
  }
  buckets_ = core::exchange_buckets(scenario_.exchange, layout, sizeof(double));
  layout_ = std::make_shared<const core::Layout>(std::move(layout));
  initial_states_ = std::move(initial_states);
  const std::uint32_t placed =
      core::exchange_type(scenario_.exchange).places_ranges ? scenario_.ranges : 0;
  std::vector<core::Member> members;
  for (NodeId id = 0; id < scenario_.initial_nodes(); ++id) members.push_back(member(id, 1));
  first_configuration_ = std::make_shared<const core::Configuration>(core::first_configuration(
      std::move(members), placed, scenario_.replication_factor, scenario_.has_coordinator()));
}

core::Member ChaosJob::member(NodeId id, core::Incarnation incarnation) const {
  if (!core::has_servers(scenario_.mode)) return {id, incarnation, true, true};
  if (id < scenario_.workers) return {id, incarnation, true, false};
  if (id < scenario_.workers + scenario_.servers) return {id, incarnation, false, true};
  if (id < scenario_.initial_nodes())
    return {id, incarnation, false, false};  // the first coordinator
  return {id, incarnation, id % 2 == 0, id % 2 == 1};
}

core::MemberOptions ChaosJob::options(core::Member self, bool is_initial,
                                      std::vector<core::MemberId> seeds) const {
  core::TrainingOptions training;
  training.mode = scenario_.mode;
  training.deal = deal();
  const core::Dealer dealer{training.deal};
  const auto last_step =
      dealer.order_of(dealer.deal()).steps_until(training.deal.epochs.value_or(0));
  training.worker.last_step = training.deal.epochs ? last_step : scenario_.steps;
  if (training.deal.epochs && training.deal.by_samples)
    training.worker.last_step = models::steps_max_in(*training.deal.epochs, training.deal.samples);
  training.worker.asks_for_plan = true;
  training.worker.barrier = scenario_.barrier;
  training.worker.recheck = scenario_.recheck;
  training.exchange.name = scenario_.exchange;
  training.exchange.cache = scenario_.cache;
  training.exchange.layout = layout_;
  const core::ExchangeType& exchange = core::exchange_type(scenario_.exchange);
  // With gossip and leader, workers have parts of updates. If pushes are applied as they arrive,
  // momentum shows their order. If they are applied in rounds, they or their sum are merged,
  // because their mean would not keep the counts whole; then a hash shows their order. With average
  // and elastic, changes of copies are added. With allreduce, the state of the optimizer is needed.
  if (exchange.name == core::GossipExchange::name || exchange.name == core::LeaderExchange::name)
    training.exchange.applier = std::make_shared<const CountingApplier>();
  else if (exchange.name == core::AverageExchange::name ||
           exchange.name == core::ElasticExchange::name)
    training.exchange.applier = core::merge_applier<double>(add);
  else if (exchange.name == core::AllreduceExchange::name)
    training.exchange.applier = std::make_shared<const StateApplier>();
  else if (scenario_.has_coordinator() && barrier::is_bsp(scenario_.barrier))
    training.exchange.applier = core::merge_applier<double>(merge);
  else
    training.exchange.applier = std::make_shared<const MomentumApplier>();
  training.exchange.workers = scenario_.workers;
  training.exchange.initial_states = initial_states_;
  core::MemberOptions options;
  options.self = self;
  options.role = std::make_shared<const core::TrainingOptions>(std::move(training));
  options.members_max = nodes_max;
  if (is_initial) options.first_configuration = first_configuration_;
  options.seeds = std::move(seeds);
  options.council.replication_factor = scenario_.replication_factor;
  options.council.stuck_after = stuck_after;
  options.council.give_up_after = stuck_after / 2;
  return options;
}

core::DealOptions ChaosJob::deal() const {
  core::DealOptions deal{.samples = 4 * scenario_.workers + scenario_.seed % 7,
                         .batch = 1 + scenario_.seed % 3,
                         .seed = scenario_.seed,
                         .workers = scenario_.workers};
  if (barrier::hands_in_early(scenario_.barrier)) {
    // Batches are large enough for a worker to hand in a part of one.
    deal.by_samples = true;
    deal.samples *= 3;
    deal.batch += 3;
  }
  // The number of epochs that the samples of all steps of all workers make up.
  if (scenario_.seed % 2 == 1)
    deal.epochs = static_cast<double>(scenario_.steps * deal.batch * scenario_.workers) /
                  static_cast<double>(deal.samples);
  if (deal.by_samples) return deal;
  deal.dynamic = scenario_.seed / 3 % 3 == 2;
  if (deal.dynamic) deal.batch *= scenario_.workers;
  return deal;
}

core::Update ChaosJob::update(std::size_t incarnation_index, core::Step step,
                              std::size_t samples) const {
  core::Update update;
  update.samples = static_cast<std::uint32_t>(samples);
  update.loss = Random::stream(scenario_.seed, incarnation_index, step).real();
  // The barrier becomes tighter for some steps, and looser for others.
  if (barrier::moves_with_descent(scenario_.barrier))
    update.descent = barrier::Descent{1, step / 4 % 2 == 0 ? -1.0 : 1.0};
  auto values = core::Buffer::make<double>(4);
  const auto number = static_cast<double>(1009 * incarnation_index + step + 1);
  std::ranges::copy(std::array{1.0, static_cast<double>(step + 1), number, number},
                    values->as<double>().begin());
  const std::shared_ptr<const core::Buffer> shared = std::move(values);
  const auto rows =
      std::make_shared<const std::vector<std::uint32_t>>(std::initializer_list<std::uint32_t>{
          static_cast<std::uint32_t>(incarnation_index), incarnations_max});
  for (core::RangeId r = 0; r < scenario_.ranges; ++r)
    update.parts.push_back({r, {shared, 0, 4, rows}});
  return update;
}

core::EarlyParts ChaosJob::parts(std::size_t incarnation_index, core::Step step,
                                 std::size_t samples, std::size_t bucket) const {
  core::EarlyParts early{buckets_.at(bucket).first, update(incarnation_index, step, samples)};
  std::erase_if(early.update.parts,
                [&](const core::Update::Part& part) { return part.range < early.first; });
  return early;
}

}  // namespace starling::sim
