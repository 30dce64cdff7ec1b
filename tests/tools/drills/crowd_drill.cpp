/// Many nodes that only probe each other, without a job.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/security/endpoint.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/engine/core/membership/membership.hpp"
#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class Crowd : public Drill {
 protected:
  /// Returns all nodes as `status` shows them.
  nlohmann::json nodes() {
    const ProgramResult ran = fleet_->run("status --json" + fleet_->client_flags(0));
    const auto json = nlohmann::json::parse(ran.out, nullptr, false);
    return json.is_discarded() ? nlohmann::json::array() : json["nodes"];
  }
  /// Returns how many nodes are alive in the view of the first node, itself included.
  std::size_t count_alive() {
    const ProgramResult ran = fleet_->run("status --here --json" + fleet_->client_flags(0));
    const auto json = nlohmann::json::parse(ran.out, nullptr, false);
    if (json.is_discarded()) return 0;
    const auto& known_nodes = json["nodes"];
    return static_cast<std::size_t>(
        std::ranges::count(known_nodes, "alive", [](const auto& node) { return node["state"]; }));
  }
};

/// A simplified node, which knows only its seed node: it joins through the seed node, answers it,
/// and probes it as often as a member of a cluster of `cluster_size` nodes would. One machine can
/// run hundreds of these; hundreds of real nodes would have a quarter of a million connections.
class SimplifiedNode {
 public:
  SimplifiedNode(actor::EventLoop& loop, std::uint64_t id, const std::string& seed_address,
                 int cluster_size)
      : loop_(loop), random_(id) {
    auto opened = security::Endpoint::open(
        security::EndpointOptions{},
        [this](const wire::FrameView& frame, const security::Sender&) { receive(frame); });
    if (!opened) throw std::runtime_error{opened.error().message};
    endpoint_ = *std::move(opened);
    core::MembershipOptions options;
    options.self = {.id = id,
                    .address = endpoint_->address(),
                    .name = "simplified" + std::to_string(id),
                    .workers = 1};
    options.seeds = {seed_address};
    // The simplified node knows no node but its seed node.
    options.nodes_max = 1;
    options.probe_interval *= cluster_size;
    options.sync_interval *= cluster_size;
    loop_.post([this, options] {
      membership_ = std::make_unique<core::Membership>(options, random_());
      run([](core::Membership& membership, const auto& context) { membership.start(context); });
    });
  }

 private:
  /// Called on the endpoint's thread.
  void receive(const wire::FrameView& frame) {
    const auto message = wire::decode_control(frame);
    if (!message) return;
    const auto* body = std::get_if<core::MembershipMessage>(&message->body);
    if (body == nullptr) return;
    loop_.post([this, received = *body] {
      run([&](core::Membership& membership, const auto& context) {
        membership.on(context, received);
      });
    });
  }

  template <class Event>
  void run(Event event) {
    if (!membership_) return;
    std::vector<core::MembershipEffect> effects;
    event(*membership_, core::MembershipContext{now(), random_, effects});
    for (core::MembershipEffect& effect : effects) execute(effect);
  }

  void execute(core::MembershipEffect& effect) {
    if (auto* send = std::get_if<core::MembershipSend>(&effect))
      endpoint_->send(send->address, wire::TrafficClass::control, encode(std::move(send->message)));
    else if (const auto* timer = std::get_if<core::SetTimer>(&effect))
      loop_.post_after(timer->at - now(), [this] {
        run([](core::Membership& membership, const auto& context) {
          membership.on_timer(context);
        });
      });
  }

  [[nodiscard]] wire::Frame encode(core::MembershipMessage body) const {
    wire::ControlMessage message;
    message.from = membership_->self().id;
    message.address = endpoint_->address();
    message.body = std::move(body);
    return wire::encode(message);
  }
  static core::Time now() { return actor::EventLoop::Clock::now().time_since_epoch(); }

  actor::EventLoop& loop_;
  Random random_;
  std::unique_ptr<core::Membership> membership_;
  std::unique_ptr<security::Endpoint> endpoint_;
};

TEST_F(Crowd, CostsANodeLittleMemoryAndTimeForEachPeer) {
  constexpr int peers_max = 500;
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(1));
  // Growth is measured from two peers on, because a node allocates some memory once for all
  // connections.
  actor::EventLoop loop;
  std::vector<std::unique_ptr<SimplifiedNode>> peers;
  const auto grow_to = [&](int size) {
    while (std::ssize(peers) < size)
      peers.push_back(
          std::make_unique<SimplifiedNode>(loop, peers.size() + 1, fleet_->address(0), peers_max));
    const auto deadline = hosts::Fleet::Clock::now() + 120s;
    while (count_alive() < peers.size() + 1 && hosts::Fleet::Clock::now() < deadline)
      std::this_thread::sleep_for(1s);
    EXPECT_EQ(count_alive(), peers.size() + 1);
    std::this_thread::sleep_for(10s);
  };
  grow_to(2);
  const std::size_t kib_before = fleet_->rss_kib(0);
  grow_to(peers_max);
  const auto cpu_time_before = fleet_->cpu_time(0);
  std::this_thread::sleep_for(120s);
  const double cpu_share = (fleet_->cpu_time(0) - cpu_time_before) / 120s;
  const auto kib_grown = static_cast<double>(fleet_->rss_kib(0)) - static_cast<double>(kib_before);
  report("kb_a_peer", std::to_string(kib_grown * 1.024 / (peers_max - 2)));
  report("share_of_a_core", std::to_string(cpu_share));
  EXPECT_EQ(count_alive(), peers_max + 1U);
  EXPECT_LE(kib_grown * 1.024 / (peers_max - 2), 100);
  EXPECT_LE(cpu_share, 0.05);
  loop.close();
}

/// Child processes that compute without end, four for each processor.
class Overload {
 public:
  Overload() {
    for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i)
      if (const pid_t child = ::fork(); child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile unsigned long turns = 0;;) turns = turns + 1;
      } else {
        children_.push_back(child);
      }
  }
  ~Overload() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  Overload(const Overload&) = delete;
  Overload& operator=(const Overload&) = delete;

 private:
  std::vector<pid_t> children_;
};

TEST_F(Crowd, DeclaresAtMostOneNodeDeadOnAnOverloadedMachine) {
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(10));
  std::uint64_t probes = 0;
  std::uint64_t suspicions = 0;
  std::uint64_t deaths = 0;
  {
    const Overload overload;
    const auto deadline = hosts::Fleet::Clock::now() + 900s;
    while (probes < 10'000 && hosts::Fleet::Clock::now() < deadline) {
      std::this_thread::sleep_for(5s);
      std::uint64_t probes_now = 0;
      suspicions = deaths = 0;
      for (const auto& node : nodes()) {
        if (!node.contains("membership")) continue;
        probes_now += node["membership"]["probes"].get<std::uint64_t>();
        suspicions += node["membership"]["suspicions"].get<std::uint64_t>();
        deaths += node["membership"]["deaths"].get<std::uint64_t>();
      }
      probes = std::max(probes, probes_now);
    }
  }
  report("probes", std::to_string(probes));
  report("suspicions", std::to_string(suspicions));
  report("deaths", std::to_string(deaths));
  EXPECT_GE(probes, 10'000U);
  EXPECT_LE(deaths, 1U);
  EXPECT_TRUE(fleet_->wait_until_members_agree(10s));
}

}  // namespace
}  // namespace starling::program
