/// Feeds one node with frames from any sender, while its time passes. An input is a series of
/// events: the head of a frame, or a time.
#include "starling/engine/core/membership/membership.hpp"

#include <set>

#include "starling/actor/wire/control.hpp"
#include "tests/actor/wire/examples.hpp"
#include "tests/fuzz/frames.hpp"

namespace starling::fuzz {
namespace {

using namespace core;
using namespace std::chrono_literals;

constexpr std::size_t acts_max = 64;
/// An act from here on is a time.
constexpr std::size_t time_from = 192;
constexpr Time time_unit = 50ms;
constexpr std::size_t timers_max = 1000;

MembershipOptions options() {
  MembershipOptions options;
  options.self = {.id = 77, .address = "tcp://127.0.0.1:7400", .name = "n1", .workers = 4};
  options.seeds = {"tcp://127.0.0.1:1"};
  options.nodes_max = 5;  // less than the seeds know of
  return options;
}

class One {
 public:
  One() : member_(options(), 7) { member_.start({now_, random_, out_}); }

  void receive(const MembershipMessage& message) {
    member_.on({now_, random_, out_}, message);
    look();
  }
  void pass(Time time) {
    const Time end = now_ + time;
    std::size_t count = 0;
    for (; !timers_.empty() && *timers_.begin() <= end; ++count) {
      require(count < timers_max, "timers come to rest");
      now_ = std::max(now_, *timers_.begin());
      timers_.erase(timers_.begin());
      member_.on_timer({now_, random_, out_});
      look();
    }
    now_ = end;
  }

 private:
  void look() {
    const MembershipOptions bounds = options();
    require(member_.self().id == bounds.self.id && member_.self().state == NodeState::alive,
            "nobody says for a member that it is gone");
    require(member_.nodes().size() <= bounds.nodes_max, "members are bounded");
    for (const MembershipEffect& effect : out_) {
      if (const auto* timer = std::get_if<SetTimer>(&effect)) timers_.insert(timer->at);
      if (const auto* send = std::get_if<MembershipSend>(&effect)) look_at(*send);
    }
    out_.clear();
  }
  /// Checks that other members can read a message that the member sends.
  static void look_at(const MembershipSend& send) {
    require(!send.address.empty(), "messages have an address");
    const auto frame = wire::encode(wire::ControlMessage{77, "", send.message});
    require(frame.head.size() < 65536, "messages are bounded");
    require(wire::decode_control({frame.head, {}}).ok(), "messages can be read");
  }

  Time now_{};
  Random random_{1};
  std::vector<MembershipEffect> out_;
  std::multiset<Time> timers_;
  Membership member_;
};

}  // namespace

bool read(Input input) {
  One one;
  Feed feed{input};
  bool heard = false;
  for (std::size_t acts = 0; acts < acts_max && !feed.empty(); ++acts) {
    const std::size_t act = feed.byte();
    if (act >= time_from) {
      one.pass(time_unit * (act - time_from + 1));
      continue;
    }
    const auto message = wire::decode_control({feed.part(), {}});
    if (!message) continue;
    if (const auto* body = std::get_if<MembershipMessage>(&message->body)) {
      one.receive(*body);
      heard = true;
    }
  }
  return heard;
}

/// One message of each kind from others than itself, alone and all of them with time between.
std::vector<Bytes> seeds() {
  std::vector<Bytes> all(1);
  NodeId from = 100;
  for (auto message : wire::example_control_messages()) {
    auto* body = std::get_if<MembershipMessage>(&message.body);
    if (body == nullptr) continue;
    body->from.id = ++from;
    body->from.address += std::to_string(from);
    Bytes one{std::byte{0}};
    put_part(one, wire::encode(message).head);
    all.front().insert(all.front().end(), one.begin(), one.end());
    all.front().push_back(static_cast<std::byte>(time_from + 10));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace starling::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return starling::fuzz::read(data, size);
}
