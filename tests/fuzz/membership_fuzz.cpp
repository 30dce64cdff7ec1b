/// Passes frames of any sender to the Membership of one node, and advances its time. An input is a
/// series of events: each is the head of a frame or a time to wait.
#include "starling/engine/core/membership/membership.hpp"

#include <set>

#include "starling/actor/wire/control.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

using namespace core;
using namespace std::chrono_literals;

constexpr std::size_t events_max = 64;
/// An event below it is a frame. The event `first_time_event` + n waits (n + 1) * `time_unit`.
constexpr std::size_t first_time_event = 192;
constexpr Time time_unit = 50ms;
constexpr std::size_t timers_max = 1000;

MembershipOptions options() {
  MembershipOptions options;
  options.self = {.id = 77, .address = "tcp://127.0.0.1:7400", .name = "n1", .workers = 4};
  options.seeds = {"tcp://127.0.0.1:1"};
  options.nodes_max = 5;  // fewer than the nodes in the seeds
  return options;
}

class TestNode {
 public:
  TestNode() : membership_(options(), 7) { membership_.start({now_, random_, effects_}); }

  void receive(const MembershipMessage& message) {
    membership_.on({now_, random_, effects_}, message);
    check_effects();
  }
  void advance(Time time) {
    const Time end = now_ + time;
    std::size_t count = 0;
    for (; !timers_.empty() && *timers_.begin() <= end; ++count) {
      require(count < timers_max, "the number of timers is bounded");
      now_ = std::max(now_, *timers_.begin());
      timers_.erase(timers_.begin());
      membership_.on_timer({now_, random_, effects_});
      check_effects();
    }
    now_ = end;
  }

 private:
  void check_effects() {
    const MembershipOptions bounds = options();
    require(membership_.self().id == bounds.self.id && membership_.self().state == NodeState::alive,
            "no message makes a node consider itself dead");
    require(membership_.nodes().size() <= bounds.nodes_max, "the number of known nodes is bounded");
    for (const MembershipEffect& effect : effects_) {
      if (const auto* timer = std::get_if<SetTimer>(&effect)) timers_.insert(timer->at);
      if (const auto* send = std::get_if<MembershipSend>(&effect)) check_sent(*send);
    }
    effects_.clear();
  }
  /// Requires that other nodes can read a message that the node sends.
  static void check_sent(const MembershipSend& send) {
    require(!send.address.empty(), "messages have an address");
    const auto frame = wire::encode(wire::ControlMessage{77, "", send.message});
    require(frame.head.size() < 65536, "messages are bounded");
    require(wire::decode_control({frame.head, {}}).ok(), "messages can be read");
  }

  Time now_{};
  Random random_{1};
  std::vector<MembershipEffect> effects_;
  std::multiset<Time> timers_;
  Membership membership_;
};

}  // namespace

bool read(Input input) {
  TestNode node;
  InputReader reader{input};
  bool has_received = false;
  for (std::size_t events = 0; events < events_max && !reader.empty(); ++events) {
    const std::size_t event = reader.byte();
    if (event >= first_time_event) {
      node.advance(time_unit * (event - first_time_event + 1));
      continue;
    }
    const auto message = wire::decode_control({reader.sized(), {}});
    if (!message) continue;
    if (const auto* body = std::get_if<MembershipMessage>(&message->body)) {
      node.receive(*body);
      has_received = true;
    }
  }
  return has_received;
}

/// Returns one seed for each membership message in the examples, each from another node, and one
/// seed with all these messages and times between them.
std::vector<Bytes> seeds() {
  std::vector<Bytes> all(1);
  NodeId from = 100;
  for (auto message : wire::example_control_messages()) {
    auto* body = std::get_if<MembershipMessage>(&message.body);
    if (body == nullptr) continue;
    body->from.id = ++from;
    body->from.address += std::to_string(from);
    Bytes event{std::byte{0}};
    put_sized(event, wire::encode(message).head);
    all.front().insert(all.front().end(), event.begin(), event.end());
    all.front().push_back(static_cast<std::byte>(first_time_event + 10));
    all.push_back(std::move(event));
  }
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
