#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "starling/base/distributions/distribution.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/engine/sim/protocol/protocol.hpp"
#include "starling/tools/repro/exchanges/exchange_study.hpp"

namespace starling::program {
namespace {

using core::MemberId;
using core::RangeId;

/// The number of elements of the model of a simulated job.
constexpr std::size_t elements = 1000;
constexpr std::size_t round_workers = 4;

/// Returns a job whose model is a vector. The update of a worker's first step adds first(worker) to
/// each element, because it is a gradient and the learning rate is -1; all other updates are zeros.
template <class First>
sim::Job vector_job(First first) {
  sim::Job job;
  job.layout = std::make_shared<const core::Layout>(core::make_layout(
      {models::Parameter{.name = "x", .shape = {elements}}}, sizeof(double), round_workers));
  const auto values_of = [layout = job.layout](RangeId range, double value) {
    const std::size_t count = layout->ranges[range].count;
    auto values = core::Buffer::make<double>(count);
    std::ranges::fill(values->as<double>(), value);
    return core::Slice{std::move(values), 0, count, nullptr};
  };
  const auto ranges = static_cast<RangeId>(job.layout->ranges.size());
  for (RangeId range = 0; range < ranges; ++range)
    job.initial_states.push_back(
        {.range = range, .value = values_of(range, 0), .slots = {}, .ledger = {}});
  job.applier = core::gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = -1}, .schedule = {}, .batch = 1});
  job.compute = [=](MemberId worker, const core::Compute& compute) {
    core::Update update{.parts = {}, .samples = 1};
    for (RangeId range = 0; range < ranges; ++range)
      update.parts.push_back({range, values_of(range, compute.step == 0 ? first(worker) : 0)});
    return update;
  };
  return job;
}

sim::ProtocolOptions options_of(const std::string& exchange, std::size_t workers,
                                std::uint64_t steps) {
  const bool is_barrier = exchange.starts_with("allreduce") || exchange.starts_with("average");
  return {
      .mode = core::Mode::peer,
      .exchange = exchange,
      .barrier = is_barrier ? barrier::Barrier{barrier::Bsp{}} : barrier::Barrier{barrier::Asp{}},
      .workers = workers,
      .steps = steps,
      .step_time = parse_distribution("const:100ms").value(),
      .link = {.latency = parse_distribution("const:1ms").value()}};
}

double bytes_a_step(const sim::Traffic& traffic, std::size_t workers, std::uint64_t steps) {
  return static_cast<double>(traffic.bytes) / static_cast<double>(workers) /
         static_cast<double>(steps);
}

/// 2^m workers gossip over the exponential graph. Their values differ by up to 1 after the first
/// update, and are compared after m steps.
Result<GossipRun> simulate_gossip(std::size_t m) {
  constexpr std::uint64_t steps = 12;
  GossipRun run{.workers = std::size_t{1} << m};
  const auto workers = static_cast<double>(run.workers);
  sim::Protocol protocol{options_of("gossip", run.workers, steps),
                         vector_job([=](MemberId worker) { return worker / workers; })};
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  protocol.on_compute = [&](MemberId, const core::Compute& compute) {
    if (compute.step != m) return;
    for (const double value : compute.values.at(0).value.as<double>()) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  };
  if (!protocol.run()) return Error{protocol.error()}.within("gossip");
  const sim::ProtocolResult result = protocol.result();
  run.value_bytes =
      bytes_a_step(sim::traffic_of<core::PushSum>(result.traffic), run.workers, steps);
  run.progress_bytes =
      bytes_a_step(sim::traffic_of<core::KnownProgress>(result.traffic), run.workers, steps);
  run.difference = most - least;
  return run;
}

/// Returns the bytes of all sums of a job of `steps` steps.
Result<double> bytes_of_sums(const std::string& exchange, std::uint64_t steps) {
  sim::Protocol protocol{options_of(exchange, round_workers, steps),
                         vector_job([](MemberId) { return 1.0; })};
  if (!protocol.run()) return Error{protocol.error()}.within(exchange);
  return static_cast<double>(sim::traffic_of<core::SumPiece>(protocol.result().traffic).bytes);
}

/// Returns the bytes of the sums of a step, without those that a job sends at its end.
Result<double> bytes_of_sums_a_step(const std::string& exchange) {
  constexpr std::uint64_t steps = 256;
  const auto once = bytes_of_sums(exchange, steps);
  const auto twice = bytes_of_sums(exchange, 2 * steps);
  if (!once || !twice) return once ? twice : once;
  return (*twice - *once) / static_cast<double>(steps);
}

}  // namespace

Result<double> simulate_rounds(
    const std::string& exchange, std::uint64_t steps, core::Time latency,
    const std::function<core::Time(core::MemberId, core::Step)>& step_time) {
  sim::ProtocolOptions options = options_of(exchange, round_workers, steps);
  options.step_time_of = step_time;
  options.link.latency = {laws::Constant{latency}};
  sim::Protocol protocol{std::move(options), vector_job([](MemberId) { return 1.0; })};
  if (!protocol.run()) return Error{protocol.error()}.within(exchange);
  return in_seconds(protocol.result().elapsed) / static_cast<double>(steps);
}

Result<void> simulate_exchanges(ExchangeStudy& study) {
  for (std::size_t m = 3; m <= (study.options.quick ? 6 : 10); ++m) {
    auto run = simulate_gossip(m);
    if (!run) return std::move(run).error();
    study.gossip.push_back(*run);
  }
  constexpr core::Time computing = std::chrono::milliseconds{100};
  for (const double sum : {0.25, 0.5, 1.0, 1.5, 2.0}) {
    // A ring of 4 workers sends 3 messages one after another to sum, and 3 to copy the sums.
    const core::Time latency = to_duration(sum / 6 * static_cast<double>(computing.count()));
    const auto mean_step = [&](const char* exchange) {
      return simulate_rounds(exchange, 200, latency,
                             [](MemberId, core::Step) { return computing; });
    };
    const auto step = mean_step("allreduce:ring");
    if (!step) return step.error();
    const auto overlapped = mean_step("allreduce:ring,overlap");
    if (!overlapped) return overlapped.error();
    study.overlaps.push_back(
        {sum, *step / in_seconds(computing), *overlapped / in_seconds(computing)});
  }
  const auto whole = bytes_of_sums_a_step("allreduce");
  if (!whole) return whole.error();
  for (const std::size_t every : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    const auto bytes = bytes_of_sums_a_step("average:every=" + std::to_string(every));
    if (!bytes) return bytes.error();
    study.averages.push_back({every, *bytes / *whole});
  }
  return {};
}

}  // namespace starling::program
