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
#include "starling/engine/exchange/ownership/peer.hpp"
#include "tests/engine/core/print.hpp"
#include "tests/engine/core/transcript_reader.hpp"

namespace starling::core {
namespace {

/// One line of text for each effect.
using Lines = std::vector<std::string>;

/// Runs the events of a transcript on a core of any type.
class Player {
 public:
  virtual ~Player() = default;
  virtual Lines play(Time now, Random& random, const std::string& event, Words& words) = 0;
};

template <class Core>
class PlayerOf : public Player {
 public:
  explicit PlayerOf(Core core) : core_(std::move(core)) {}

  Lines play(Time now, Random& random, const std::string& event, Words& words) override {
    Effects effects;
    play({now, random, effects}, event, words);
    Lines lines;
    for (const Effect& effect : effects) lines.push_back(to_text(effect));
    return lines;
  }

 private:
  void play(const Context& context, const std::string& event, Words& words) {
    if constexpr (std::same_as<Core, Coordinator>) {
      if (event == "stands") return core_.on(context, read_status(words));
      if (event == "takes-over")
        return core_.take_over(words.ids<MemberId>("workers"), words.ids<MemberId>("owners"));
      if (event == "members")
        return core_.on_members(context, words.ids<MemberId>("left"),
                                words.ids<MemberId>("joined"));
    }
    if (event == "<-") return receive(context, read_message(words));
    if (event == "left") {
      if constexpr (requires { core_.on_left(context, 0); })
        return core_.on_left(context, words.id("worker"));
    }
    if (event == "timer") {
      if constexpr (requires { core_.on_timer(context); }) return core_.on_timer(context);
    }
    if constexpr (std::same_as<Core, Worker>) return play_worker(core_, context, event, words);
    if constexpr (requires { core_.worker(); })
      return play_worker(core_.worker(), context, event, words);
    throw Unreadable{"'" + event + "' is no event of this core"};
  }

  void receive(const Context& context, const Message& message) {
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { core_.on(context, m); })
            core_.on(context, m);
          else
            throw Unreadable{"this core has no handler for this message"};
        },
        message);
  }

  static void play_worker(Worker& worker, const Context& context, const std::string& event,
                          Words& words) {
    if (event == "start") return worker.start(context);
    if (event == "timer") return worker.on_timer(context);
    if (event == "resume") return worker.resume(context);
    if (event == "failed")
      return worker.on_failure(context, words.count("step"), words.text("why", "?"));
    if (event == "planned") {
      std::vector<RangeRows> wanted;
      for (const auto range : words.ids<RangeId>("whole")) wanted.push_back({range, nullptr});
      if (words.has("rows-of")) {
        const RangeId range = words.id("rows-of");
        wanted.push_back({range, words.rows()});
      }
      return worker.on_plan(context, words.count("step", worker.step()), std::move(wanted));
    }
    if (event != "computed") throw Unreadable{"'" + event + "' is no event of a worker"};
    const Step step = words.count("step");
    Update update{.parts = {}, .samples = static_cast<std::uint32_t>(words.count("samples", 1))};
    for (const auto range : words.ids<RangeId>("ranges")) {
      auto one = Buffer::make<float>(1);
      one->as<float>()[0] = 1;
      update.parts.push_back({range, {std::move(one), 0, 1, nullptr}});
    }
    worker.on_update(context, step, std::move(update));
  }

  Core core_;
};

/// Runs the events of a transcript on one end of a channel whose payloads are words.
class ChannelPlayer : public Player {
 public:
  explicit ChannelPlayer(Words& words)
      : channel_(words.id("self"), words.id("other"), options(words)) {}

  Lines play(Time now, Random&, const std::string& event, Words& words) override {
    ChannelEffects<std::string> effects;
    const ChannelContext<std::string> context{now, effects};
    Lines lines;
    if (event == "send") {
      if (!channel_.send(context, words.verb())) lines.emplace_back("refused");
    } else if (event == "<-") {
      channel_.on(context, read_packet(words));
    } else if (event == "timer") {
      channel_.on_timer(context);
    } else {
      throw Unreadable{"'" + event + "' is no event of a channel"};
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
    if (words.verb() != "packet") throw Unreadable{"a channel receives packets"};
    Packet<std::string> packet;
    packet.from = words.id("from");
    packet.to = words.id("to");
    packet.sequence = words.count("number", 0);
    packet.acknowledged = words.count("ack", 0);
    packet.held = words.count("held", 0);
    if (words.has("payload")) packet.payload = words.text("payload", "");
    return packet;
  }

  Channel<std::string> channel_;
};

template <class Core>
std::unique_ptr<Player> make_player(Core core) {
  return std::make_unique<PlayerOf<Core>>(std::move(core));
}

std::unique_ptr<Player> make_core(Words& words) {
  const std::string kind = words.verb();
  if (kind == "worker") return make_player(Worker{read_worker(words)});
  if (kind == "shard") return make_player(Shard<float>{read_shard(words)});
  if (kind == "peer") {
    WorkerOptions worker = read_worker(words);
    ShardOptions<float> shard = read_shard(words);
    shard.workers = worker.members->size();
    return make_player(Peer<float>{std::move(worker), std::move(shard)});
  }
  if (kind == "coordinator") {
    CoordinatorOptions options;
    options.barrier = read_barrier(words);
    options.recheck = read_recheck(words, barrier::Recheck::central());
    options.first = words.ids<Step>("first");
    return make_player(Coordinator{std::move(options)});
  }
  if (kind == "channel") return std::make_unique<ChannelPlayer>(words);
  throw Unreadable{"'" + kind + "' is no core"};
}

/// The core that a transcript has made, and its random generator.
struct Replay {
  std::unique_ptr<Player> player;
  Random random{1};

  Lines play(std::string_view line) {
    Words words{line};
    const std::string verb = words.verb();
    Lines effects;
    if (verb == "new") {
      random = Random{words.count("seed", 1)};
      player = make_core(words);
    } else if (verb == "at" && player) {
      const Time now = value_or_throw(parse_duration(words.verb()));
      const std::string event = words.verb();
      effects = player->play(now, random, event, words);
    } else {
      throw Unreadable{"a line begins with #, new, at or =>; new comes first"};
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
      for (const std::string& effect : state.play(line)) output += "=> " + effect + "\n";
    } catch (const Unreadable& fault) {
      output += std::string{"=> error: "} + fault.what() + "\n";
    }
  }
  while (output.ends_with("\n\n")) output.pop_back();
  return output;
}

}  // namespace starling::core
