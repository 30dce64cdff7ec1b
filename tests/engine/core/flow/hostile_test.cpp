/// Gives a member of the role Flow messages with any content, as a broken or hostile member may
/// send them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/flow/flow.hpp"

namespace starling::core {
namespace {

constexpr MemberId hostile_members_max = 4;

/// An action of a shuffle from 3 parts to 2.
ActionPtr two_stages() {
  auto action = std::make_shared<Action>();
  action->stages = {{3, {}}, {2, {0}}};
  action->names = {{0, 0}, {0, 1}};
  action->is_kept = {false, false};
  action->gathers = true;
  action->fingerprint = 7;
  action->reads = [](flow::StageId stage, flow::Part part) {
    return stage == 0 ? std::vector<Action::Read>{}
                      : std::vector<Action::Read>{{0, std::nullopt, part}};
  };
  return action;
}

/// Draws the fields of messages: mostly small numbers, which name things that exist.
class Drawer {
 public:
  explicit Drawer(Random& random) : random_(random) {}

  std::uint32_t number() {
    return random_.below(20) == 0 ? static_cast<std::uint32_t>(random_())
                                  : static_cast<std::uint32_t>(random_.below(4));
  }
  StageName stage() { return {number() / 2, number()}; }
  PartName part() { return {stage(), number()}; }
  PieceName piece() { return {part(), number()}; }
  ProgramPosition position() { return {number(), number(), number() + 6U, number() == 0}; }
  std::string error() { return number() == 0 ? "an error" : ""; }
  flow::TaskCounts counts() { return {number(), number(), number(), number()}; }
  template <class Draw>
  auto some(Draw draw) {
    std::vector<decltype(draw())> all;
    for (std::uint64_t left = random_.below(4); left > 0; --left) all.push_back(draw());
    return all;
  }
  PieceChunk chunk() {
    const std::vector<std::byte> bytes(random_.below(9));
    return {piece(), number(), number() > 0, number() == 0, error(), RecordBytes::copy_of(bytes)};
  }

  AnyOf<FlowMessages> message() {
    const auto draw_part = [this] { return part(); };
    switch (random_.below(11)) {
      case 0:
        return FlowState{position(), number(), some(draw_part), some(draw_part), some([this] {
                           return ActionFailure{number(), error()};
                         })};
      case 1:
        return FlowProgress{position(), number()};
      case 2:
        return TaskOrder{part(), number() == 0};
      case 3:
        return StageHolders{stage(), some([this] { return number(); })};
      case 4:
        return TaskReport{part(), part(), static_cast<TaskOutcome>(random_.below(3)), error(),
                          counts()};
      case 5:
        return OutputLost{part(), number()};
      case 6:
        return PieceRequest{number(), some([this] { return piece(); }), number()};
      case 7:
        return PieceChunks{number(), some([this] { return chunk(); })};
      case 8:
        return random_.below(20) == 0 ? ActionEnd{number(), error()} : ActionEnd{9, error()};
      case 9:
        return ForgetActions{number() / 2};
      default:
        return FlowEnd{};
    }
  }

 private:
  Random& random_;
};

/// Delivers the message if it is valid, and then those that the member sends to itself. Returns how
/// many were valid.
int deliver(Flow& flow, const ConfigurationPtr& configuration, Time now, Random& random,
            MemberId from, AnyOf<FlowMessages> message) {
  std::vector<std::pair<MemberId, AnyOf<FlowMessages>>> waiting{{from, std::move(message)}};
  int valid = 0;
  for (std::size_t i = 0; i < waiting.size() && i < 1000; ++i) {
    FlowContext::Effects effects;
    const FlowContext context{now, random, effects};
    const auto [sender, next] = waiting[i];
    std::visit(
        [&, by = sender](const auto& m) {
          if (!flow.is_valid({*configuration, by, hostile_members_max}, m)) return;
          ++valid;
          (void)flow.on(context, by, m);
        },
        next);
    for (const auto& effect : effects) {
      if (const auto* sent = std::get_if<SendToMember<FlowMessages>>(&effect)) {
        if (sent->to == 0) waiting.emplace_back(0, sent->message);
      } else if (const auto* spread = std::get_if<SendToAll<FlowMessages>>(&effect)) {
        waiting.emplace_back(0, spread->message);
      }
    }
  }
  return valid;
}

TEST(HostileFlow, MessagesWithAnyContentBreakNoMember) {
  int valid = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random = Random::stream(23, seed);
    // This member is in charge in every other seed.
    const MemberId coordinator = seed % 2 == 0 ? 0 : 1;
    std::vector<Member> members;
    for (MemberId id = 0; id < 3; ++id) members.push_back({id, 1, true, true, id});
    Configuration first = first_configuration(members, 0, 2, true);
    first.coordinator = coordinator;
    const auto configuration = std::make_shared<const Configuration>(first);
    Flow flow{std::make_shared<const FlowOptions>(),
              {members.front(), hostile_members_max, configuration}};
    FlowContext::Effects effects;
    flow.on_configuration(FlowContext{Time{0}, random, effects}, configuration, nullptr);
    flow.on(FlowContext{Time{0}, random, effects}, BeginAction{two_stages()});
    Drawer drawer{random};
    for (int i = 0; i < 300; ++i) {
      const Time now = std::chrono::milliseconds{10 * i};
      const auto from = static_cast<MemberId>(random.below(3));
      ASSERT_NO_THROW(valid += deliver(flow, configuration, now, random, from, drawer.message()))
          << "seed " << seed << ", message " << i;
      FlowContext::Effects ignored;
      const FlowContext context{now, random, ignored};
      ASSERT_NO_THROW(flow.on(context, TaskEnded{drawer.part(), drawer.error(), {}}));
      ASSERT_NO_THROW(flow.on_timer(context, 0));
    }
  }
  EXPECT_GT(valid, 20'000);
}

}  // namespace
}  // namespace starling::core
