/// A job on several nodes, each with a transport of its own: real sockets on the loopback
/// interface.
#include "starling/actor/cluster/site.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

#include "starling/actor/wire/transport.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "tests/actor/job/counters.hpp"

namespace starling::live {
namespace {

using namespace std::chrono_literals;
using core::Member;
using State = actor::MemberReport::State;

using MakeJob = std::function<Assignment<float>()>;

/// Some nodes in this process: for each a transport and a site. Members have the numbers of the
/// nodes that they were added with.
class Nodes {
 public:
  explicit Nodes(MakeJob job)
      : job_(std::move(job)), ranges_(job_().task->layout().ranges.size()) {}
  ~Nodes() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) kill(node);
  }

  /// Adds a node for some of the founders, or for a member that is to join.
  std::size_t add(std::vector<Member> members) {
    const std::size_t index = nodes_.size();
    SiteOptions site;
    site.members_max = 16;
    site.send = [this, index](const std::vector<core::Envelope>& envelopes) {
      for (const core::Envelope& envelope : envelopes) send(index, envelope);
    };
    auto made = make_site<float>(job_(), site).value();
    auto transport = wire::Transport::open(
        {}, [this, index](const wire::Incoming& incoming) { take(index, incoming); });
    const std::lock_guard lock{mutex_};
    nodes_.push_back({std::move(transport).value(), std::move(made)});
    for (const Member& member : members) lead(member.id, index);
    members_.push_back(std::move(members));
    addresses_.push_back(nodes_[index].transport->address());
    return index;
  }

  /// Messages for that member go to `node` from now on.
  void lead(core::MemberId id, std::size_t node) {
    const std::lock_guard lock{mutex_};
    node_of_.resize(std::max<std::size_t>(node_of_.size(), id + 1));
    node_of_[id] = node;
  }

  void found() {
    std::vector<Member> all;
    for (const auto& some : members_) all.insert(all.end(), some.begin(), some.end());
    std::ranges::sort(all);
    const auto first = std::make_shared<const core::Configuration>(core::first_configuration(
        std::move(all), ranges_, 2, core::keeps_steps_centrally(job_().job.mode)));
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      nodes_[node].site->found(members_[node], first);
  }

  LocalJob& site(std::size_t node) { return *nodes_.at(node).site; }
  [[nodiscard]] bool lives(std::size_t node) const { return nodes_[node].site != nullptr; }

  /// Ends a node at once, without notice to the others.
  void kill(std::size_t node) {
    One dead;
    {
      const std::lock_guard lock{mutex_};
      std::swap(dead, nodes_.at(node));
    }
    dead.transport.reset();
    dead.site.reset();
  }

  /// Reports the members of `node` dead to every node that lives, as a failure detector does.
  void declare_dead(std::size_t node) {
    for (std::size_t other = 0; other < nodes_.size(); ++other)
      if (lives(other))
        for (const Member& member : members_[node])
          site(other).judge({member.id, member.incarnation, true});
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

  /// The step of the first member there.
  core::Step step(std::size_t node) { return site(node).reports().at(0).worker.step; }

  /// All ranges, each from its primary.
  std::vector<core::RangeState> model() {
    std::vector<core::RangeState> states;
    for (auto& node : nodes_)
      if (node.site)
        for (auto& state : node.site->ranges()) states.push_back(std::move(state));
    std::ranges::sort(states, {}, &core::RangeState::range);
    EXPECT_EQ(states.size(), ranges_);
    return states;
  }

  void expect_exact() {
    const auto states = model();
    expect_exact_counts(states);
    for (const auto& state : states)
      for (auto& node : nodes_) {
        if (!node.site) continue;
        for (const auto& report : node.site->reports())
          EXPECT_EQ(state.ledger.at(report.member).step, report.worker.step);
      }
  }

 private:
  struct One {
    std::unique_ptr<wire::Transport> transport;
    std::unique_ptr<LocalJob> site;
  };

  void send(std::size_t from, const core::Envelope& envelope) {
    wire::Frame frame = wire::encode(1, from, envelope);
    const auto traffic_class = wire::traffic_class_of(frame);
    const std::lock_guard lock{mutex_};
    if (envelope.to >= node_of_.size() || !nodes_[from].transport) return;
    const std::size_t to = node_of_[envelope.to];
    if (from != to && (cut_off_ == from || cut_off_ == to)) return;
    nodes_[from].transport->send({addresses_[to], std::nullopt}, traffic_class, std::move(frame));
  }

  void take(std::size_t to, const wire::Incoming& incoming) {
    auto decoded = wire::decode_envelope(incoming.frame);
    ASSERT_TRUE(decoded) << decoded.error().message;
    const std::lock_guard lock{mutex_};
    if (to < nodes_.size() && nodes_[to].site)
      nodes_[to].site->deliver(std::move(decoded->envelope), incoming.frame.at_once);
  }

  MakeJob job_;
  std::size_t ranges_;
  /// Recursive, since a site may send while a message is delivered to it.
  std::recursive_mutex mutex_;
  std::vector<std::string> addresses_;
  std::optional<std::size_t> cut_off_;
  std::vector<One> nodes_;
  std::vector<std::vector<Member>> members_;
  std::vector<std::size_t> node_of_;
};

/// A job that counts updates.
MakeJob counting(const TrainOptions& options) {
  return [options, data = std::make_shared<models::Table>(load("linear:d=2,n=1200"))] {
    return assign_training(Counters{}, *data, nullptr, options).value();
  };
}

TrainOptions options_of(std::size_t workers, core::Step steps, const char* barrier,
                        core::Mode mode = core::Mode::peer, core::Time delay = 2ms) {
  return counting_options(mode, workers, steps, barrier, delay);
}

/// Peers, one a node.
void add_peers(Nodes& nodes, core::MemberId count) {
  for (core::MemberId id = 0; id < count; ++id) nodes.add({{id, 1, true, true}});
}

/// On three nodes: workers 0 to 5, two a node, servers 6 to 8, and on the first 9, the coordinator.
void add_servers(Nodes& nodes) {
  for (core::MemberId node = 0; node < 3; ++node) {
    std::vector<Member> members{
        {2 * node, 1, true, false}, {2 * node + 1, 1, true, false}, {6 + node, 1, false, true}};
    if (node == 0) members.push_back({9, 1, false, false});
    nodes.add(std::move(members));
  }
}

constexpr const char* sampled = "pssp:s=4,beta=2";

TEST(Site, ThreeNodesMakeEachUpdateOnce) {
  Nodes nodes{counting(options_of(3, 200, sampled, core::Mode::peer, 0ns))};
  add_peers(nodes, 3);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600);
  nodes.expect_exact();
}

/// Why a member cannot go on, where one cannot.
std::string broken(Nodes& nodes, std::size_t count) {
  for (std::size_t node = 0; node < count; ++node)
    for (const auto& report : nodes.site(node).reports())
      if (report.state == State::failed) return report.why;
  return {};
}

/// A member that cannot go on answers no message: its site reports the failure in its place.
TEST(Site, TellsOfAMemberThatBreaks) {
  Nodes nodes{[make = counting(options_of(3, 200, sampled, core::Mode::peer, 0ns))] {
    auto job = make();
    job.applier =
        core::Merge<float>{[](const auto&, auto, auto) { throw std::runtime_error{"no merge"}; }};
    return job;
  }};
  add_peers(nodes, 3);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return !broken(nodes, 3).empty(); }));
  EXPECT_EQ(broken(nodes, 3).substr(0, 7), "member ");
  EXPECT_NE(broken(nodes, 3).find("no merge"), std::string::npos) << broken(nodes, 3);
}

/// A configuration makes a member the only owner of a range that it never had.
TEST(Site, OutlivesAMemberThatIsToldWhatCannotBe) {
  Nodes nodes{counting(options_of(3, 100'000, sampled, core::Mode::peer, 1ms))};
  add_peers(nodes, 3);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(0) > 3; }));
  auto next = std::make_shared<core::Configuration>(*nodes.site(0).configuration());
  next->epoch = 2;
  core::MemberId other = 0;
  while (next->ranges[0].find(other) != nullptr) ++other;
  next->ranges[0] = {2, {{other, 2}}};
  core::Envelope lie;
  lie.from = (other + 1) % 3;
  lie.to = other;
  lie.epoch = 2;
  lie.packet.from = 1;
  lie.packet.payload = core::peer_message_of(core::ConfigurationPtr{std::move(next)});
  nodes.site(other).deliver(std::move(lie), false);
  ASSERT_TRUE(nodes.wait_until([&] { return !broken(nodes, 3).empty(); }));
  EXPECT_NE(broken(nodes, 3).find("broken invariant: part.full"), std::string::npos)
      << broken(nodes, 3);
}

/// Records on which thread each step ran. From `long_from` on, steps take 1 ms.
class Noting final : public Task {
 public:
  static constexpr core::Step long_from = 1000;
  static constexpr core::Step steps = long_from + 20;

  Noting() {
    layout_.parameters.push_back({.name = "w", .shape = {4}});
    layout_.offsets = {0};
    layout_.ranges.push_back({0, 4, 0, {{0, 0, 0, 4}}});
    layout_.size = 4;
  }
  [[nodiscard]] const core::Layout& layout() const override { return layout_; }
  StepResult compute(const StepInput& input, core::Scratch&) override {
    if (input.step >= long_from) std::this_thread::sleep_for(1ms);
    ran_on.push_back(std::this_thread::get_id());
    StepResult result;
    result.update.samples = 1;
    result.update.parts.push_back({0, {core::Buffer::make<float>(4), 0, 4, nullptr}});
    return result;
  }

  std::vector<std::thread::id> ran_on;

 private:
  core::Layout layout_;
};

TEST(Site, BriefCodeRunsWithItsActorUntilItTakesLong) {
#ifdef STARLING_SANITIZED
  GTEST_SKIP() << "no code is brief under a sanitizer on a busy machine";
#endif
  const auto task = std::make_shared<Noting>();
  {
    Nodes nodes{[&] {
      Assignment<float> job;
      job.job = options_of(1, Noting::steps, "asp").job;
      job.job.delay = {};
      job.task = task;
      job.applier = [](const core::MergeSite&, std::span<float>, std::span<const float>) {};
      job.start = core::to_ranges<float>(task->layout(), std::vector<float>(4));
      return job;
    }};
    add_peers(nodes, 1);
    nodes.found();
    ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  }
  ASSERT_EQ(task->ran_on.size(), Noting::steps);
  const std::thread::id pool = task->ran_on.front();
  const auto turn = task->ran_on.begin() + Noting::long_from;
  EXPECT_LT(std::count(task->ran_on.begin(), turn, pool), Noting::long_from);
  // The first long step cannot be known to be long before it has run.
  EXPECT_EQ(std::count(turn + 1, task->ran_on.end(), pool), task->ran_on.end() - turn - 1);
}

TEST(Site, TheOthersGoOnWhenANodeIsKilled) {
  Nodes nodes{counting(options_of(4, 200, sampled))};
  add_peers(nodes, 4);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(2) >= 30; }));
  nodes.kill(2);
  nodes.declare_dead(2);
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  for (const std::size_t node : {0U, 1U, 3U}) EXPECT_EQ(nodes.step(node), 200U);
  nodes.expect_exact();
}

TEST(Site, ANodeThatJoinsTakesPart) {
  Nodes nodes{counting(options_of(3, 200, sampled))};
  add_peers(nodes, 3);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(0) >= 30; }));
  const Member joiner{3, 1, true, true};
  nodes.site(nodes.add({joiner})).join(joiner, {0});
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.step(3), 200U);
  const auto owns = [](const core::Ownership& range) { return range.find(3) != nullptr; };
  EXPECT_TRUE(std::ranges::any_of(nodes.site(3).configuration()->ranges, owns));
  nodes.expect_exact();
}

TEST(Site, ANodeThatLeavesHandsOverWhatItOwns) {
  Nodes nodes{counting(options_of(4, 200, sampled))};
  add_peers(nodes, 4);
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
  Nodes nodes{counting(options_of(3, 200, sampled))};
  add_peers(nodes, 3);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(0) >= 30; }));
  nodes.cut_off(1);
  std::this_thread::sleep_for(500ms);
  nodes.cut_off(std::nullopt);
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600);
  nodes.expect_exact();
}

TEST(Site, WhoIsShutOutGivesNoRangesAnyMore) {
  Nodes nodes{counting(options_of(3, 200, sampled))};
  add_peers(nodes, 3);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(0) >= 30; }));
  EXPECT_FALSE(nodes.site(1).ranges().empty());
  for (const std::size_t other : {0U, 2U}) nodes.site(other).judge({1, 1, true});
  ASSERT_TRUE(
      nodes.wait_until([&] { return nodes.site(1).reports().at(0).state == State::excluded; }));
  EXPECT_TRUE(nodes.site(1).ranges().empty());
  ASSERT_TRUE(nodes.wait_until([&] {
    return nodes.site(0).reports().at(0).state == State::done &&
           nodes.site(2).reports().at(0).state == State::done;
  }));
  expect_exact_counts(nodes.model());
}

TEST(Site, WhoIsShutOutDoesNotStandInForAnotherOfItsNumber) {
  Nodes nodes{counting(options_of(3, 200, sampled))};
  add_peers(nodes, 3);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(0) >= 30; }));
  for (const std::size_t other : {0U, 2U}) nodes.site(other).judge({1, 1, true});
  ASSERT_TRUE(
      nodes.wait_until([&] { return nodes.site(1).reports().at(0).state == State::excluded; }));
  const Member namesake{1, 2, true, true};
  const std::size_t elsewhere = nodes.add({namesake});
  nodes.site(elsewhere).join(namesake, {0});
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(elsewhere) > 0; }));
  const Member returning{4, 1, true, true};
  nodes.lead(4, 1);
  nodes.site(1).join(returning, {0});
  // It works with the ranges that its node's former number has elsewhere.
  ASSERT_TRUE(nodes.wait_until([&] {
    const auto reports = nodes.site(1).reports();
    return reports.size() == 2 && reports[1].state == State::done;
  }));
  EXPECT_EQ(nodes.site(1).reports().at(1).worker.step, 200U);
}

class SiteWithServers : public testing::TestWithParam<std::pair<core::Mode, const char*>> {};

TEST_P(SiteWithServers, MakesEachUpdateOnce) {
  const auto& [mode, barrier] = GetParam();
  Nodes nodes{counting(options_of(6, 100, barrier, mode, 1ms))};
  add_servers(nodes);
  nodes.found();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600);
}

/// Under every barrier: a server's node goes, with its workers, and the first with the coordinator
/// too.
TEST_P(SiteWithServers, GoesOnWhenANodeIsKilled) {
  const auto& [mode, barrier] = GetParam();
  for (const std::size_t killed : {2U, 0U}) {
    Nodes nodes{counting(options_of(6, 100, barrier, mode, 2ms))};
    add_servers(nodes);
    nodes.found();
    ASSERT_TRUE(nodes.wait_until([&] { return nodes.step(killed) >= 20; }));
    nodes.kill(killed);
    nodes.declare_dead(killed);
    ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
    for (const std::size_t node : {0U, 1U, 2U})
      if (node != killed) {
        EXPECT_EQ(nodes.step(node), 100U);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, SiteWithServers,
                         testing::Values(std::pair{core::Mode::central, "bsp"},
                                         std::pair{core::Mode::central, "ssp:s=2"},
                                         std::pair{core::Mode::central, "pssp:s=2,beta=2"},
                                         std::pair{core::Mode::hybrid, "pbsp:beta=2"},
                                         std::pair{core::Mode::hybrid, "asp"}));

/// The same numbers whether workers and servers are in one process or on three nodes.
TEST(Site, UnderBspEqualsTheJobInOneProcess) {
  auto options = options_of(6, 60, "bsp", core::Mode::central, 0ns);
  options.job.shards = 3;
  options.batch = 8;
  options.optimizer = models::Sgd{.lr = 0.05F, .momentum = 0.9F};
  const auto data = load("linear:d=300,n=1500,noise=0.1");
  const auto model = models::Linear<float>::parse(Spec::parse("linear").value(), data).value();
  Nodes nodes{[&] { return assign_training(model, data, nullptr, options).value(); }};
  add_servers(nodes);
  nodes.found();
  const auto outcome = train(model, data, nullptr, options).value();
  ASSERT_TRUE(nodes.wait_until([&] { return nodes.all_are(State::done); }));
  const auto far = nodes.model();
  ASSERT_EQ(far.size(), outcome.model.size());
  for (std::size_t range = 0; range < far.size(); ++range) {
    const auto here = outcome.model[range].value.as<float>();
    const auto there = far[range].value.as<float>();
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-5);
  }
}

}  // namespace
}  // namespace starling::live
