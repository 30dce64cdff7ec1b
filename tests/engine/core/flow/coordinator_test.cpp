/// Plays the members of a flow to its coordinator.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/flow/flow.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

/// An action of one stage of 6 parts.
ActionPtr six_parts(ActionId id) {
  auto action = std::make_shared<Action>();
  action->id = id;
  action->stages = {{6, {}}};
  action->names = {{id, 0}};
  action->is_kept = {false};
  action->fingerprint = 7;
  action->reads = [](flow::StageId, flow::Part) { return std::vector<Action::Read>{}; };
  return action;
}

/// Member 0 is the coordinator and computes nothing; the test plays the others.
class Coordinator {
 public:
  Coordinator(MemberId members, std::uint32_t slots) {
    std::vector<Member> all;
    for (MemberId id = 0; id < members; ++id) all.push_back({id, 1, true, true, id});
    Configuration first = first_configuration(all, 0, 2, true);
    first.coordinator = 0;
    configuration_ = std::make_shared<const Configuration>(first);
    FlowOptions options;
    options.slots = 0;
    flow_ = std::make_unique<Flow>(std::make_shared<const FlowOptions>(options),
                                   RoleSetup{all.front(), members, configuration_});
    event([&](const FlowContext& c) { flow_->on_configuration(c, configuration_, nullptr); });
    begin(0);
    for (MemberId id = 1; id < members; ++id)
      give(id, FlowState{{1, 0, 7, false}, slots, {}, {}, {}});
  }

  void begin(ActionId action) {
    event([&](const FlowContext& c) { flow_->on(c, BeginAction{six_parts(action)}); });
  }
  void give(MemberId from, const AnyOf<FlowMessages>& message) {
    event([&](const FlowContext& c) {
      std::visit([&](const auto& m) { (void)flow_->on(c, from, m); }, message);
    });
  }
  void end_task(MemberId member, flow::Part part) {
    give(member, TaskReport{{{0, 0}, part}, {{0, 0}, part}, TaskOutcome::done, {}, {}});
  }
  void pass_to(Time time) {
    now_ = time;
    event([&](const FlowContext& c) { flow_->on_timer(c, 0); });
  }
  void remove(MemberId member) {
    Configuration next = *configuration_;
    ++next.epoch;
    std::erase_if(next.members, [&](const Member& one) { return one.id == member; });
    const ConfigurationPtr former =
        std::exchange(configuration_, std::make_shared<const Configuration>(next));
    event([&](const FlowContext& c) { flow_->on_configuration(c, configuration_, former); });
  }
  /// Returns the parts that the member was ordered to compute since the last call.
  std::vector<flow::Part> take_orders(MemberId member) {
    return std::exchange(orders_[member], {});
  }

 private:
  template <class Event>
  void event(const Event& run) {
    FlowContext::Effects effects;
    run(FlowContext{now_, random_, effects});
    for (const auto& effect : effects) {
      if (const auto* all = std::get_if<SendToAll<FlowMessages>>(&effect)) {
        give(0, all->message);
      } else if (const auto* one = std::get_if<SendToMember<FlowMessages>>(&effect)) {
        if (one->to == 0) give(0, one->message);
        if (const auto* order = std::get_if<TaskOrder>(&one->message))
          orders_[one->to].push_back(order->task.part);
      }
    }
  }

  Random random_{1};
  Time now_{0};
  ConfigurationPtr configuration_;
  std::unique_ptr<Flow> flow_;
  std::map<MemberId, std::vector<flow::Part>> orders_;
};

using Parts = std::vector<flow::Part>;

TEST(FlowCoordinator, GivesNoTaskTwiceToAMember) {
  Coordinator coordinator{3, 2};
  EXPECT_EQ(coordinator.take_orders(2), (Parts{1, 3}));
  for (const flow::Part part : {0U, 2U, 4U, 5U}) coordinator.end_task(1, part);
  coordinator.pass_to(2s);  // parts 1 and 3 run on member 1 too
  coordinator.end_task(1, 1);
  coordinator.remove(1);
  for (const flow::Part part : {3U, 0U, 1U, 2U, 4U, 5U}) coordinator.end_task(2, part);
  EXPECT_EQ(coordinator.take_orders(2), (Parts{0, 2, 4, 5}));
  coordinator.begin(1);
  coordinator.give(2, FlowProgress{{2, 1, 7, false}, 2});
  EXPECT_EQ(coordinator.take_orders(2), (Parts{0, 1})) << "one for each slot";
}

TEST(FlowCoordinator, GivesASlowTaskToAnotherMemberIfTheSecondOneDies) {
  Coordinator coordinator{4, 1};
  coordinator.end_task(1, 0);
  coordinator.end_task(3, 2);
  coordinator.end_task(1, 3);
  coordinator.end_task(3, 4);
  coordinator.end_task(1, 5);
  coordinator.pass_to(2s);  // part 1 runs on members 2 and 1
  coordinator.remove(1);
  coordinator.take_orders(3);
  for (const flow::Part part : {0U, 3U, 5U}) coordinator.end_task(3, part);
  const Parts orders = coordinator.take_orders(3);
  EXPECT_EQ(std::ranges::count(orders, 1U), 1);
}

/// Each failure counts as an attempt, and the first run may still succeed.
TEST(FlowCoordinator, RepeatsNoSecondRunThatHasFailed) {
  Coordinator coordinator{3, 1};
  for (const flow::Part part : {0U, 2U, 3U, 4U, 5U}) coordinator.end_task(1, part);
  coordinator.take_orders(1);
  coordinator.pass_to(2s);
  EXPECT_EQ(coordinator.take_orders(1), (Parts{1}));
  coordinator.give(1, TaskReport{{{0, 0}, 1}, {{0, 0}, 1}, TaskOutcome::failed, "disk full", {}});
  EXPECT_EQ(coordinator.take_orders(1), Parts{});
}

TEST(FlowCoordinator, TriesATaskElsewhereIfItHasFailed) {
  Coordinator coordinator{3, 1};
  EXPECT_EQ(coordinator.take_orders(1), Parts{0});
  EXPECT_EQ(coordinator.take_orders(2), Parts{1});
  coordinator.give(1, TaskReport{{{0, 0}, 0}, {{0, 0}, 0}, TaskOutcome::failed, "disk full", {}});
  EXPECT_EQ(coordinator.take_orders(2), Parts{0}) << "although member 2 is busy";
  EXPECT_EQ(coordinator.take_orders(1), Parts{2});
  // Nobody else is there.
  Coordinator alone{2, 1};
  EXPECT_EQ(alone.take_orders(1), Parts{0});
  alone.give(1, TaskReport{{{0, 0}, 0}, {{0, 0}, 0}, TaskOutcome::failed, "disk full", {}});
  EXPECT_EQ(alone.take_orders(1), Parts{0});
}

}  // namespace
}  // namespace starling::core
