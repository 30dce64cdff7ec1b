#include "tests/engine/core/transcript_reader.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace starling::core {

void WorkerWithOwners::receive(const At& at, Lines& lines, const TranscriptMessage& message) {
  std::visit(
      [&]<class M>(const M& m) {
        if constexpr (requires(const Context& c) { worker_.on(c, m); })
          run_worker(at, lines, [&](Worker& worker, const Context& c) { worker.on(c, m); });
        else if constexpr (requires(const OwnershipContext& c) { client_.on(c, m); })
          run_client(at, lines, [&](RangeClient& client, const auto& c) { client.on(c, m); });
        else
          throw UnreadableLine{"a worker has no handler for this message"};
      },
      message);
}

void WorkerWithOwners::adopt(const At& at, Lines& lines) {
  run_client(at, lines, [&](RangeClient& client, const OwnershipContext& c) {
    client.on_configuration(c, configuration_);
  });
}

void WorkerWithOwners::remove_worker(const At& at, Lines& lines, MemberId left) {
  adopt(at, lines);
  std::vector<MemberId> others = *worker_.options().workers;
  std::erase(others, left);
  run_worker(at, lines, [&](Worker& worker, const Context& c) {
    worker.on_workers(c, {std::make_shared<const std::vector<MemberId>>(others), {left}});
  });
}

void WorkerWithOwners::execute(const At& at, Lines& lines, Effect& effect) {
  const auto ask = [&](auto event) { run_client(at, lines, event); };
  if (auto* read = std::get_if<Read>(&effect))
    return ask([&](RangeClient& client, const auto& c) { client.read(c, std::move(*read)); });
  if (auto* write = std::get_if<Write>(&effect))
    return ask([&](RangeClient& client, const auto& c) { client.write(c, std::move(*write)); });
  if (const auto* enter = std::get_if<Enter>(&effect))
    return ask([&](RangeClient& client, const auto& c) { client.enter(c, *enter); });
  if (const auto* end = std::get_if<EndWrites>(&effect))
    return ask([&](RangeClient& client, const auto& c) { client.end(c, *end); });
  lines.push_back(to_text(effect));
}

void WorkerWithOwners::execute(const At& at, Lines& lines, OwnershipEffect& effect) {
  if (auto* done = std::get_if<ReadDone>(&effect))
    return run_worker(at, lines, [&](Worker& worker, const Context& c) {
      worker.on_values(c, done->step, std::move(done->values));
    });
  if (const auto* written = std::get_if<Written>(&effect))
    return run_worker(
        at, lines, [&](Worker& worker, const Context& c) { worker.on_written(c, written->step); });
  lines.push_back(to_text(effect));
}

TranscriptMessage read_message(Words& words) {
  const std::string kind = words.next();
  if (kind == "pull")
    return Pull{words.id("worker"), words.id("range"), words.count("at"), words.rows()};
  if (kind == "value") return Value{words.id("range"), words.count("at"), words.slice("values")};
  if (kind == "push") {
    Push push{.worker = words.id("worker"),
              .incarnation = static_cast<Incarnation>(words.count("incarnation", 0)),
              .range = words.id("range"),
              .step = words.count("step"),
              .samples = static_cast<std::uint32_t>(words.count("samples", 1)),
              .samples_total = 0,
              .update = words.slice("update")};
    push.samples_total = words.count("sum", push.step * push.samples);
    return push;
  }
  if (kind == "ack") return Ack{words.id("range"), words.count("step")};
  if (kind == "ended") return Ended{words.id("worker"), words.count("step")};
  if (kind == "arrived") {
    const Arrived arrived{words.id("worker"), words.count("step")};
    return Arrived{arrived.worker, arrived.step, words.flag("goes-on")};
  }
  if (kind == "proceed") return Proceed{words.count("step"), words.count("until", 0)};
  if (kind == "stop") return Stop{};
  if (kind == "batch-done") return BatchDone{words.id("worker"), words.count("step")};
  if (kind == "hand-in") return HandIn{words.count("step")};
  if (kind == "query") return StepQuery{words.id("from"), words.count("draw")};
  if (kind == "answer") {
    StepAnswer answer{words.id("from"), words.count("draw"), words.count("step")};
    if (words.has("pushed-ago"))
      answer.pace = PaceReport{words.nanoseconds("pushed-ago"), words.nanoseconds("interval"),
                               words.nanoseconds("took"), words.flag("waits")};
    return answer;
  }
  if (kind == "notify-request")
    return NotifyRequest{words.id("from"), words.count("draw"), words.count("floor")};
  if (kind == "notice") return Notice{words.id("from"), words.count("draw")};
  if (kind == "snapshot") return Snapshot{words.count("request_id"), words.count("round", 0)};
  throw UnreadableLine{"'" + kind + "' is not a message"};
}

WorkerStatus read_status(Words& words) {
  static const std::map<std::string, WorkerStatus::Phase> phases{
      {"idle", WorkerStatus::Phase::idle},
      {"entering", WorkerStatus::Phase::entering},
      {"going", WorkerStatus::Phase::going},
      {"waiting", WorkerStatus::Phase::waiting},
      {"ended", WorkerStatus::Phase::ended}};
  const auto phase = phases.find(words.next());
  if (phase == phases.end()) throw UnreadableLine{"the phase is unknown"};
  return {words.id("member"), phase->second, words.count("step", 0), words.count("held", 0)};
}

barrier::Barrier read_barrier(Words& words) {
  // Passes if at least half of the workers seen have reached the worker's own step.
  const std::vector predicates{barrier::Predicate::make("half", [](Step mine,
                                                                   std::span<const Step> seen) {
    return 2 * std::ranges::count_if(seen, [&](Step s) { return s >= mine; }) >= std::ssize(seen);
  })};
  return value_or_throw(barrier::parse(words.text("barrier", "asp"), predicates));
}

barrier::Recheck read_recheck(Words& words, const barrier::Recheck& default_value) {
  return value_or_throw(
      barrier::parse_recheck(words.text("recheck", barrier::print(default_value))));
}

WorkerWithOwners read_worker(Words& words) {
  WorkerOptions options;
  options.id = words.id("id");
  options.incarnation = static_cast<Incarnation>(words.count("incarnation", 0));
  options.first_step = words.count("first", 0);
  options.last_step = words.count("last", barrier::unlimited);
  options.central = !words.flag("distributed");
  options.bsp = words.flag("bsp");
  options.asks_for_plan = words.flag("plans");
  options.barrier = read_barrier(words);
  options.recheck = read_recheck(words, barrier::Recheck::distributed());
  options.attempts = static_cast<int>(words.count("attempts", 3));
  std::vector<MemberId> everyone(words.count("workers", 1));
  std::iota(everyone.begin(), everyone.end(), MemberId{0});
  options.workers = std::make_shared<const std::vector<MemberId>>(std::move(everyone));
  return {options, words.ids<OwnerId>("owners"), words.count("window", 64)};
}

OwnerWithoutReplicas read_shard(Words& words) {
  Layout layout;
  std::vector<RangeState> states;
  ExchangeOptions options;
  options.workers = words.count("workers", 1);
  const std::string ranges = words.text("ranges", "1");
  for (const std::string_view part : split(ranges, ',')) {
    std::vector<std::size_t> shape;
    for (const auto extent : split(part, 'x')) shape.push_back(value_or_throw(parse_count(extent)));
    const models::Parameter parameter{
        .name = std::string{part}, .shape = shape, .row_sparse = shape.size() > 1};
    const std::size_t p = layout.parameters.size();
    const std::size_t count = parameter.size();
    auto zeros = Buffer::make<float>(count);
    std::ranges::fill(zeros->as<float>(), 0.0F);
    states.push_back({.range = static_cast<RangeId>(p),
                      .value = {std::move(zeros), 0, count, nullptr},
                      .slots = {},
                      .ledger = {}});
    layout.parameters.push_back(parameter);
    layout.offsets.push_back(layout.size);
    layout.ranges.push_back({.offset = layout.size,
                             .count = count,
                             .row_size = parameter.row_sparse ? parameter.row_size() : 0,
                             .segments = {{p, 0, 0, count}}});
    layout.size += count;
  }
  options.layout = std::make_shared<const Layout>(std::move(layout));
  if (words.flag("adds"))
    options.applier = merge_applier<float>(
        [](const MergeTarget&, std::span<float> value, std::span<const float> update) {
          std::ranges::transform(value, update, value.begin(), std::plus<>{});
        });
  else
    options.applier = gradient_applier<float>(
        {.optimizer = value_or_throw(models::parse_optimizer(words.text("optimizer", "sgd:lr=1"))),
         .schedule = value_or_throw(models::parse_schedule(words.text("schedule", "constant"))),
         .l2 = 0,
         .batch = words.count("batch", 1)});
  options.bsp = words.flag("bsp");
  return OwnerWithoutReplicas{std::move(options), states};
}

}  // namespace starling::core
