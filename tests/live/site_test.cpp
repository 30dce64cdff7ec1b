/// A job on several nodes, each with a transport of its own: real sockets on the loopback
/// interface.
#include "starling/engine/live/site.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

#include "starling/actor/wire/transport.hpp"
#include "tests/live/small_jobs.hpp"

namespace starling::live {
namespace {

using namespace std::chrono_literals;
using core::Member;
using State = actor::MemberReport::State;

/// Each update adds 1 to every parameter: sgd at lr = workers with full batches, and the gradient
/// -1.
struct Counters {
  using Scalar = float;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "counts", .shape = {8192}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const models::Table&, models::Batch, std::span<float> g,
                  models::Pass&) const {
    std::ranges::fill(g, -1.0F);
    return 1;
  }
  models::Metrics evaluate(std::span<const float>, const models::Table&, models::Batch,
                           models::Pass&) const {
    return {{"loss", 1}};
  }
};

/// Some nodes in this process: for each a transport and a site.
class Nodes {
 public:
  explicit Nodes(std::size_t count, const TrainOptions& options, std::size_t copies = 2)
      : options_(options), data_(load("linear:d=2,n=1200")), copies_(copies) {
    for (std::size_t i = 0; i < count; ++i) add();
  }
  ~Nodes() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) kill(node);
  }

  void add() {
    const std::size_t index = nodes_.size();
    SiteOptions site;
    site.copies = copies_;
    site.members_max = 16;
    site.send = [this, index](const core::Envelope& envelope) { send(index, envelope); };
    auto made =
        make_site<float>(assign_training(model_, data_, nullptr, options_).value(), site).value();
    auto transport = wire::Transport::open(
        {}, [this, index](const wire::Incoming& incoming) { take(index, incoming); });
    const std::lock_guard lock{mutex_};
    nodes_.push_back({std::move(transport).value(), std::move(made)});
    addresses_.push_back(nodes_[index].transport->address());
  }

  /// Members by node: all works and owns.
  void found() {
    std::vector<Member> members;
    for (core::WorkerId id = 0; id < nodes_.size(); ++id) members.push_back({id, 1, true, true});
    const auto first = std::make_shared<const core::Configuration>(
        core::first_configuration(members, ranges(), copies_));
    for (core::WorkerId id = 0; id < nodes_.size(); ++id)
      nodes_[id].site->found({members[id]}, first);
  }

  /// A new node's member asks node 0's.
  void join() {
    add();
    nodes_.back().site->join({static_cast<core::WorkerId>(nodes_.size() - 1), 1, true, true}, {0});
  }

  Site& site(std::size_t node) { return *nodes_.at(node).site; }
  [[nodiscard]] bool lives(std::size_t node) const { return nodes_[node].site != nullptr; }

  /// Ends at once, without a word.
  void kill(std::size_t node) {
    One dead;
    {
      const std::lock_guard lock{mutex_};
      std::swap(dead, nodes_.at(node));
    }
    dead.transport.reset();
    dead.site.reset();
  }

  /// What a failure detector says to everyone who lives.
  void declare(std::size_t node, bool dead) {
    for (std::size_t other = 0; other < nodes_.size(); ++other)
      if (lives(other) && other != node)
        site(other).judge({static_cast<core::WorkerId>(node), 1, dead});
  }

  /// Nothing passes between `node` and the others any more, or again.
  void cut_off(std::optional<std::size_t> node) {
    const std::lock_guard lock{mutex_};
    cut_off_ = node;
  }

  bool wait_until(const std::function<bool()>& holds, std::chrono::seconds within = 30s) {
    const auto give_up = std::chrono::steady_clock::now() + within;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

  bool all_are(State state) {
    for (auto& node : nodes_)
      if (node.site)
        for (const auto& report : node.site->reports())
          if (report.state != state) return false;
    return true;
  }

  core::Step step(std::size_t node) { return site(node).reports().at(0).worker.step; }

  /// All ranges, from whoever is primary.
  std::vector<core::RangeState> model() {
    std::vector<core::RangeState> states;
    for (auto& node : nodes_)
      if (node.site)
        for (auto& state : node.site->ranges()) states.push_back(std::move(state));
    std::ranges::sort(states, {}, &core::RangeState::range);
    EXPECT_EQ(states.size(), ranges());
    return states;
  }

  /// Every range holds each acknowledged update of each worker once, and no other.
  void expect_exact() {
    for (const auto& state : model()) {
      // Who has joined has not made the steps before its first.
      core::Step updates = 0;
      for (const auto& entry : state.ledger) updates += entry.samples / options_.batch;
      for (const float count : state.value.as<float>())
        ASSERT_EQ(static_cast<core::Step>(count), updates) << "range " << state.range;
      for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (!lives(node)) continue;
        EXPECT_EQ(state.ledger.at(node).step, step(node));
      }
    }
  }

 private:
  struct One {
    std::unique_ptr<wire::Transport> transport;
    std::unique_ptr<Site> site;
  };

  [[nodiscard]] std::size_t ranges() const {
    return assign_training(model_, data_, nullptr, options_)->task->layout().ranges.size();
  }

  void send(std::size_t from, const core::Envelope& envelope) {
    wire::Frame frame = wire::encode(1, envelope);
    const auto lane = frame.body.empty() ? wire::Lane::control : wire::Lane::data;
    const std::lock_guard lock{mutex_};
    if (envelope.to >= addresses_.size() || !nodes_[from].transport) return;
    if (from != envelope.to && (cut_off_ == from || cut_off_ == envelope.to)) return;
    nodes_[from].transport->send({addresses_[envelope.to], std::nullopt}, lane, std::move(frame));
  }

  void take(std::size_t to, const wire::Incoming& incoming) {
    auto decoded = wire::decode_envelope(incoming.frame);
    ASSERT_TRUE(decoded) << decoded.error().message;
    const std::lock_guard lock{mutex_};
    if (to < nodes_.size() && nodes_[to].site)
      nodes_[to].site->deliver(std::move(decoded->envelope));
  }

  TrainOptions options_;
  Counters model_;
  models::Table data_;
  std::size_t copies_;
  std::mutex mutex_;
  std::vector<std::string> addresses_;
  std::optional<std::size_t> cut_off_;
  std::vector<One> nodes_;
};

TrainOptions counting(std::size_t workers, core::Step steps, const char* barrier) {
  TrainOptions options;
  options.job.mode = core::Mode::peer;
  options.job.workers = workers;
  options.job.steps = steps;
  options.job.barrier = barrier::parse(barrier).value();
  options.job.compute_threads = 1;
  options.batch = 10;
  options.optimizer = models::Sgd{.lr = static_cast<float>(workers)};
  return options;
}

constexpr const char* sampled = "pssp:s=4,beta=2";

TEST(Site, ThreeNodesMakeEachUpdateOnce) {
  Nodes nodes{3, counting(3, 200, sampled)};
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600);
  nodes.expect_exact();
}

TEST(Site, TheOthersGoOnWhenANodeIsKilled) {
  auto options = counting(4, 200, sampled);
  options.job.delay = Distribution{laws::Exponential{2ms}};
  Nodes nodes{4, options};
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(2) >= 30; }));
  nodes.kill(2);
  nodes.declare(2, true);
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  for (const std::size_t node : {0U, 1U, 3U}) EXPECT_EQ(nodes.step(node), 200U);
  nodes.expect_exact();
}

TEST(Site, ANodeThatJoinsTakesPart) {
  auto options = counting(3, 200, sampled);
  options.job.delay = Distribution{laws::Exponential{2ms}};
  Nodes nodes{3, options};
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(0) >= 30; }));
  nodes.join();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.step(3), 200U);
  EXPECT_EQ(nodes.site(0).configuration()->members.size(), 4U);
  const auto owns = [](const core::Ownership& range) { return range.find(3) != nullptr; };
  EXPECT_TRUE(std::ranges::any_of(nodes.site(3).configuration()->ranges, owns));
  nodes.expect_exact();
}

TEST(Site, ANodeThatLeavesHandsOverWhatItOwns) {
  auto options = counting(4, 200, sampled);
  options.job.delay = Distribution{laws::Exponential{2ms}};
  Nodes nodes{4, options};
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(1) >= 30; }));
  nodes.site(1).leave();
  ASSERT_TRUE(
      nodes.wait_until([&] { return nodes.site(1).reports().at(0).state == State::excluded; }));
  nodes.kill(1);
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  nodes.expect_exact();
}

TEST(Site, ACutLosesNothing) {
  auto options = counting(3, 200, sampled);
  options.job.delay = Distribution{laws::Exponential{2ms}};
  Nodes nodes{3, options};
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(0) >= 30; }));
  nodes.cut_off(1);
  std::this_thread::sleep_for(500ms);
  nodes.cut_off(std::nullopt);
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600);
  nodes.expect_exact();
}

}  // namespace
}  // namespace starling::live
