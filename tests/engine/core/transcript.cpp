#include "tests/engine/core/transcript.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/core/channel/channel.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/exchange/ownership/peer.hpp"
#include "tests/engine/core/print.hpp"

namespace starling::core {
namespace {

struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T must(Result<T> result) {
  if (!result) throw Unreadable{result.error().message};
  return std::move(*result);
}

/// The words of a line: `verb key=value key=value flag`. Every one must be asked for.
class Words {
 public:
  explicit Words(std::string_view line) {
    std::istringstream stream{std::string{line}};
    for (std::string word; stream >> word;) words_.push_back(word);
  }

  std::string verb() {
    if (words_.empty()) throw Unreadable{"a word is missing"};
    std::string first = words_.front();
    words_.erase(words_.begin());
    return first;
  }
  bool flag(std::string_view name) { return std::erase(words_, name) > 0; }
  bool has(std::string_view key) const {
    return std::ranges::any_of(words_, [&](const std::string& w) { return is(w, key); });
  }
  std::string text(std::string_view key, std::string otherwise) {
    const auto at = std::ranges::find_if(words_, [&](const auto& w) { return is(w, key); });
    if (at == words_.end()) return otherwise;
    std::string value = at->substr(key.size() + 1);
    words_.erase(at);
    return value;
  }
  std::uint64_t count(std::string_view key) {
    if (!has(key)) throw Unreadable{std::string{key} + "= is missing"};
    return count(key, 0);
  }
  std::uint64_t count(std::string_view key, std::uint64_t otherwise) {
    const std::string value = text(key, std::to_string(otherwise));
    return value == "finished" ? barrier::finished : must(parse_count(value));
  }
  std::uint32_t id(std::string_view key) { return static_cast<std::uint32_t>(count(key)); }
  std::vector<double> list(std::string_view key) {
    std::vector<double> numbers;
    const std::string value = text(key, "none");
    if (value == "none") return numbers;
    for (const auto part : split(value, ',')) numbers.push_back(must(parse_number(part)));
    return numbers;
  }
  template <class N>
  std::vector<N> ids(std::string_view key) {
    std::vector<N> numbers;
    for (const double number : list(key)) numbers.push_back(static_cast<N>(number));
    return numbers;
  }
  Rows rows() {
    if (!has("rows")) return nullptr;
    return std::make_shared<const std::vector<std::uint32_t>>(ids<std::uint32_t>("rows"));
  }
  Slice slice(std::string_view key) {
    const auto numbers = list(key);
    if (numbers.empty()) return {};
    auto buffer = Buffer::make<float>(numbers.size());
    std::ranges::transform(numbers, buffer->as<float>().begin(),
                           [](double number) { return static_cast<float>(number); });
    return {std::move(buffer), 0, numbers.size(), rows()};
  }
  void expect_end() const {
    if (!words_.empty()) throw Unreadable{"'" + words_.front() + "' is not understood"};
  }

 private:
  static bool is(const std::string& word, std::string_view key) {
    return word.starts_with(key) && word.size() > key.size() && word[key.size()] == '=';
  }

  std::vector<std::string> words_;
};

Message read_message(Words& words) {
  const std::string kind = words.verb();
  if (kind == "pull")
    return Pull{words.id("worker"), words.id("range"), words.count("at"), words.rows()};
  if (kind == "value") return Value{words.id("range"), words.count("at"), words.slice("values")};
  if (kind == "push") {
    Push push{.worker = words.id("worker"),
              .incarnation = static_cast<Incarnation>(words.count("incarnation", 0)),
              .range = words.id("range"),
              .step = words.count("step"),
              .samples = static_cast<std::uint32_t>(words.count("samples", 1)),
              .samples_sum = 0,
              .update = words.slice("update")};
    push.samples_sum = words.count("sum", push.step * push.samples);
    return push;
  }
  if (kind == "ack") return Ack{words.id("range"), words.count("step")};
  if (kind == "ended") return Ended{words.id("worker"), words.count("step")};
  if (kind == "arrived") return Arrived{words.id("worker"), words.count("step")};
  if (kind == "proceed") return Proceed{words.count("step")};
  if (kind == "stop") return Stop{};
  if (kind == "query") return StepQuery{words.id("from"), words.count("draw")};
  if (kind == "answer")
    return StepAnswer{words.id("from"), words.count("draw"), words.count("step")};
  if (kind == "notify")
    return NotifyAt{words.id("from"), words.count("draw"), words.count("floor")};
  if (kind == "caught-up") return CaughtUp{words.id("from"), words.count("draw")};
  if (kind == "snapshot") return Snapshot{words.count("ticket"), words.count("round", 0)};
  throw Unreadable{"'" + kind + "' is no message"};
}

WorkerStatus read_standing(Words& words) {
  static const std::map<std::string, WorkerStatus::Phase> phases{
      {"idle", WorkerStatus::Phase::idle},
      {"entering", WorkerStatus::Phase::entering},
      {"going", WorkerStatus::Phase::going},
      {"waiting", WorkerStatus::Phase::waiting},
      {"ended", WorkerStatus::Phase::ended}};
  const auto phase = phases.find(words.verb());
  if (phase == phases.end()) throw Unreadable{"that is no phase"};
  return {words.id("member"), phase->second, words.count("step", 0), words.count("held", 0)};
}

barrier::Barrier read_barrier(Words& words) {
  /// Passes where half of those seen have reached one's step.
  const std::vector own{barrier::Predicate::make("half", [](Step mine, std::span<const Step> seen) {
    return 2 * std::ranges::count_if(seen, [&](Step s) { return s >= mine; }) >= std::ssize(seen);
  })};
  return must(barrier::parse(words.text("barrier", "asp"), own));
}

barrier::Recheck read_recheck(Words& words, const barrier::Recheck& otherwise) {
  return must(barrier::parse_recheck(words.text("recheck", barrier::print(otherwise))));
}

WorkerOptions read_worker(Words& words) {
  WorkerOptions options;
  options.id = words.id("id");
  options.incarnation = static_cast<Incarnation>(words.count("incarnation", 0));
  options.first = words.count("first", 0);
  options.last = words.count("last", barrier::finished);
  options.central = !words.flag("distributed");
  options.bsp = words.flag("bsp");
  options.plans = words.flag("plans");
  options.barrier = read_barrier(words);
  options.recheck = read_recheck(words, barrier::Recheck::distributed());
  options.attempts = static_cast<int>(words.count("attempts", 3));
  std::vector<MemberId> everyone(words.count("workers", 1));
  std::iota(everyone.begin(), everyone.end(), MemberId{0});
  options.members = std::make_shared<const std::vector<MemberId>>(std::move(everyone));
  options.owner_of = std::make_shared<const std::vector<OwnerId>>(words.ids<OwnerId>("owners"));
  return options;
}

/// `ranges=3,2x4`: a dense parameter of 3 elements, then a row-sparse one of 2 rows of 4, each a
/// range of its own. All start at zero.
ShardOptions<float> read_shard(Words& words) {
  Layout layout;
  ShardOptions<float> options;
  options.workers = words.count("workers", 1);
  const std::string ranges = words.text("ranges", "1");
  for (const std::string_view part : split(ranges, ',')) {
    std::vector<std::size_t> shape;
    for (const auto extent : split(part, 'x')) shape.push_back(must(parse_count(extent)));
    const models::Parameter parameter{
        .name = std::string{part}, .shape = shape, .row_sparse = shape.size() > 1};
    const std::size_t p = layout.parameters.size();
    const std::size_t count = parameter.size();
    auto zeros = Buffer::make<float>(count);
    std::ranges::fill(zeros->as<float>(), 0.0F);
    options.ranges.push_back({.range = static_cast<RangeId>(p),
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
    options.applier =
        Merge<float>{[](const MergeSite&, std::span<float> value, std::span<const float> update) {
          std::ranges::transform(value, update, value.begin(), std::plus<>{});
        }};
  else
    options.applier = GradientApplier{
        .optimizer = must(models::parse_optimizer(words.text("optimizer", "sgd:lr=1"))),
        .schedule = must(models::parse_schedule(words.text("schedule", "constant"))),
        .l2 = 0,
        .batch = words.count("batch", 1)};
  options.bsp = words.flag("bsp");
  return options;
}

/// Effects, one a line.
using Lines = std::vector<std::string>;

/// A core under test, whatever it is.
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
      if (event == "stands") return core_.on(context, read_standing(words));
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
            throw Unreadable{"this core does not take that message"};
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

/// One end of a channel of words.
class ChannelPlayer : public Player {
 public:
  explicit ChannelPlayer(Words& words)
      : channel_(incarnation(words, "self").value_or(0), incarnation(words, "other"),
                 options(words)) {}

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
    } else if (event == "learn") {
      channel_.on_incarnation(context, static_cast<Incarnation>(words.count("incarnation")));
    } else {
      throw Unreadable{"'" + event + "' is no event of a channel"};
    }
    for (const auto& effect : effects) lines.push_back(to_text(effect));
    return lines;
  }

 private:
  static std::optional<Incarnation> incarnation(Words& words, std::string_view key) {
    if (!words.has(key)) return std::nullopt;
    return static_cast<Incarnation>(words.count(key));
  }
  static ChannelOptions options(Words& words) {
    ChannelOptions options;
    options.window = words.count("window", options.window);
    options.queue = words.count("queue", options.queue);
    return options;
  }
  static Packet<std::string> read_packet(Words& words) {
    if (words.verb() != "packet") throw Unreadable{"a channel hears packets"};
    Packet<std::string> packet;
    packet.from = static_cast<Incarnation>(words.count("from"));
    packet.to = incarnation(words, "to");
    packet.sequence = words.count("number", 0);
    packet.acknowledged = words.count("ack", 0);
    packet.held = words.count("held", 0);
    if (words.has("payload")) packet.payload = words.text("payload", "");
    return packet;
  }

  Channel<std::string> channel_;
};

template <class Core>
std::unique_ptr<Player> player(Core core) {
  return std::make_unique<PlayerOf<Core>>(std::move(core));
}

std::unique_ptr<Player> create(Words& words) {
  const std::string kind = words.verb();
  if (kind == "worker") return player(Worker{read_worker(words)});
  if (kind == "shard") return player(Shard<float>{read_shard(words)});
  if (kind == "peer") {
    WorkerOptions worker = read_worker(words);
    ShardOptions<float> shard = read_shard(words);
    shard.workers = worker.members->size();
    return player(Peer<float>{std::move(worker), std::move(shard)});
  }
  if (kind == "coordinator") {
    CoordinatorOptions options;
    options.barrier = read_barrier(words);
    options.recheck = read_recheck(words, barrier::Recheck::central());
    options.first = words.ids<Step>("first");
    return player(Coordinator{std::move(options)});
  }
  if (kind == "channel") return std::make_unique<ChannelPlayer>(words);
  throw Unreadable{"'" + kind + "' is no core"};
}

/// The state that a transcript has reached.
struct Stage {
  std::unique_ptr<Player> player;
  Random random{1};

  Lines play(std::string_view line) {
    Words words{line};
    const std::string verb = words.verb();
    Lines effects;
    if (verb == "new") {
      random = Random{words.count("seed", 1)};
      player = create(words);
    } else if (verb == "at" && player) {
      const Time now = must(parse_duration(words.verb()));
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
  Stage stage;
  std::string told;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("=>")) continue;
    told += std::string{line} + "\n";
    if (trimmed(line).empty() || line.starts_with("#")) continue;
    try {
      for (const std::string& effect : stage.play(line)) told += "=> " + effect + "\n";
    } catch (const Unreadable& fault) {
      told += std::string{"=> error: "} + fault.what() + "\n";
    }
  }
  while (told.ends_with("\n\n")) told.pop_back();
  return told;
}

}  // namespace starling::core
