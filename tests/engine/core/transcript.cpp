#include "tests/engine/core/transcript.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/core/channel/channel.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "tests/engine/core/initial_workers.hpp"
#include "tests/engine/core/print.hpp"
#include "tests/engine/core/transcript_reader.hpp"

namespace starling::core {
namespace {

/// Runs the events of a transcript on one core.
class CoreRunner {
 public:
  virtual ~CoreRunner() = default;
  virtual Lines run_event(Time now, Random& random, const std::string& event, Words& words) = 0;
};

void remove_worker(OwnerWithoutReplicas& owner, const OwnershipContext& context, MemberId left) {
  owner.remove_worker(context, left);
}
void remove_worker(Coordinator& coordinator, const Context& context, MemberId left) {
  coordinator.on_members(context, {left}, {});
}

/// The events of a shard and of a coordinator:
///
///     <- MESSAGE            receives a message
///     left worker=I         the death or departure of a worker
///
/// and of a coordinator:
///
///     timer                                       a timer fires
///     stands PHASE member=I step=S held=S         receives a WorkerStatus
///     takes-over workers=I,... owners=I,...       replaces another coordinator
///     members left=I,... joined=I,...             the workers have changed
template <class Core, class EventContext>
class TypedCoreRunner : public CoreRunner {
 public:
  explicit TypedCoreRunner(Core core) : core_(std::move(core)) {}

  Lines run_event(Time now, Random& random, const std::string& event, Words& words) override {
    std::remove_cvref_t<decltype(std::declval<EventContext>().out)> effects;
    run_event({now, random, effects}, event, words);
    Lines lines;
    for (const auto& effect : effects) lines.push_back(to_text(effect));
    return lines;
  }

 private:
  void run_event(const EventContext& context, const std::string& event, Words& words) {
    if constexpr (std::same_as<Core, Coordinator>) {
      if (event == "timer") return core_.on_timer(context);
      if (event == "stands") return core_.on(context, read_status(words));
      if (event == "takes-over")
        return core_.take_over(words.ids<MemberId>("workers"), words.ids<MemberId>("owners"));
      if (event == "members")
        return core_.on_members(context, words.ids<MemberId>("left"),
                                words.ids<MemberId>("joined"));
    }
    if (event == "<-") return receive(context, read_message(words));
    if (event == "left") return remove_worker(core_, context, words.id("worker"));
    throw UnreadableLine{"'" + event + "' is not an event of this core"};
  }

  void receive(const EventContext& context, const TranscriptMessage& message) {
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { core_.on(context, m); })
            core_.on(context, m);
          else
            throw UnreadableLine{"this core has no handler for this message"};
        },
        message);
  }

  Core core_;
};

/// The events of a worker:
///
///     <- MESSAGE            receives a message
///     timer                 a timer fires
///     left worker=I         the death or departure of another worker
///     start, failed, planned, computed
///
/// `planned whole=R,... rows-of=R rows=I,...` gives the ranges that a step reads; `computed
/// ranges=R,...` gives an update of 1 to each of the ranges.
class WorkerRunner : public CoreRunner {
 public:
  explicit WorkerRunner(WorkerWithOwners worker) : worker_(std::move(worker)) {}

  Lines run_event(Time now, Random& random, const std::string& event, Words& words) override {
    const WorkerWithOwners::At at{now, random};
    Lines lines;
    if (!std::exchange(has_configuration_, true)) worker_.adopt(at, lines);
    if (event == "<-")
      worker_.receive(at, lines, read_message(words));
    else if (event == "left")
      worker_.remove_worker(at, lines, words.id("worker"));
    else
      worker_.run_worker(at, lines, [&](Worker& worker, const Context& context) {
        run_worker_event(worker, context, event, words);
      });
    return lines;
  }

 private:
  static void run_worker_event(Worker& worker, const Context& context, const std::string& event,
                               Words& words) {
    if (event == "start") return worker.start(context);
    if (event == "timer") return worker.on_timer(context);
    if (event == "failed")
      return worker.on_failure(context, words.count("step"), words.text("why", "?"));
    if (event == "planned") {
      std::vector<RangeRows> plan;
      for (const auto range : words.ids<RangeId>("whole")) plan.push_back({range, nullptr});
      if (words.has("rows-of")) {
        const RangeId range = words.id("rows-of");
        plan.push_back({range, words.rows()});
      }
      return worker.on_plan(context, words.count("step", worker.step()), std::move(plan));
    }
    if (event != "computed") throw UnreadableLine{"'" + event + "' is not an event of a worker"};
    const Step step = words.count("step");
    Update update{.parts = {}, .samples = static_cast<std::uint32_t>(words.count("samples", 1))};
    for (const auto range : words.ids<RangeId>("ranges")) {
      auto value = Buffer::make<float>(1);
      value->as<float>()[0] = 1;
      update.parts.push_back({range, {std::move(value), 0, 1, nullptr}});
    }
    worker.on_update(context, step, std::move(update));
  }

  WorkerWithOwners worker_;
  bool has_configuration_ = false;
};

/// Runs the events `send PAYLOAD`, `<- packet ...` and `timer` on one end of a channel. Payloads
/// are words.
class ChannelRunner : public CoreRunner {
 public:
  explicit ChannelRunner(Words& words)
      : channel_(words.id("self"), words.id("other"), options(words)) {}

  Lines run_event(Time now, Random&, const std::string& event, Words& words) override {
    ChannelEffects<std::string> effects;
    const ChannelContext<std::string> context{now, effects};
    Lines lines;
    if (event == "send") {
      if (!channel_.send(context, words.next())) lines.emplace_back("refused");
    } else if (event == "<-") {
      channel_.on(context, read_packet(words));
    } else if (event == "timer") {
      channel_.on_timer(context);
    } else {
      throw UnreadableLine{"'" + event + "' is not an event of a channel"};
    }
    for (const auto& effect : effects) lines.push_back(to_text(effect));
    return lines;
  }

 private:
  static ChannelOptions options(Words& words) {
    ChannelOptions options;
    options.window = words.count("window", options.window);
    options.queue = words.count("queue", options.queue);
    return options;
  }
  static Packet<std::string> read_packet(Words& words) {
    if (words.next() != "packet") throw UnreadableLine{"a channel receives packets"};
    Packet<std::string> packet;
    packet.from = words.id("from");
    packet.to = words.id("to");
    packet.sequence = words.count("number", 0);
    packet.acknowledged = words.count("ack", 0);
    packet.selective_acks = words.count("held", 0);
    if (words.has("payload")) packet.payload = words.text("payload", "");
    return packet;
  }

  Channel<std::string> channel_;
};

std::unique_ptr<CoreRunner> make_core(Words& words) {
  const std::string kind = words.next();
  if (kind == "worker") return std::make_unique<WorkerRunner>(read_worker(words));
  if (kind == "shard")
    return std::make_unique<TypedCoreRunner<OwnerWithoutReplicas, OwnershipContext>>(
        read_shard(words));
  if (kind == "coordinator") {
    CoordinatorOptions options;
    options.barrier = read_barrier(words);
    options.recheck = read_recheck(words, barrier::Recheck::central());
    Coordinator coordinator{std::move(options)};
    add_initial_workers(coordinator, words.ids<Step>("first"));
    return std::make_unique<TypedCoreRunner<Coordinator, Context>>(std::move(coordinator));
  }
  if (kind == "channel") return std::make_unique<ChannelRunner>(words);
  throw UnreadableLine{"'" + kind + "' is not a core"};
}

/// The core that a transcript has made last, and its random generator.
struct Replay {
  std::unique_ptr<CoreRunner> runner;
  Random random{1};

  Lines run_line(std::string_view line) {
    Words words{line};
    const std::string verb = words.next();
    Lines effects;
    if (verb == "new") {
      random = Random{words.count("seed", 1)};
      runner = make_core(words);
    } else if (verb == "at" && runner) {
      const Time now = value_or_throw(parse_duration(words.next()));
      const std::string event = words.next();
      effects = runner->run_event(now, random, event, words);
    } else {
      throw UnreadableLine{"a line begins with #, new, at or =>; new comes first"};
    }
    words.expect_end();
    return effects;
  }
};

}  // namespace

std::string replay(std::string_view text) {
  Replay state;
  std::string output;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("=>")) continue;
    output += std::string{line} + "\n";
    if (trim(line).empty() || line.starts_with("#")) continue;
    try {
      for (const std::string& effect : state.run_line(line)) output += "=> " + effect + "\n";
    } catch (const UnreadableLine& unreadable) {
      output += std::string{"=> error: "} + unreadable.what() + "\n";
    }
  }
  while (output.ends_with("\n\n")) output.pop_back();
  return output;
}

}  // namespace starling::core
