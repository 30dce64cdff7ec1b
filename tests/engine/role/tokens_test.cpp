/// Tests a role that is not in the library's list: jobs of it run in the real MemberCore and over
/// the simulator's network, and the validator and the codec know its messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/wire/frame.hpp"
#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/engine/core/wire_size.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"
#include "tests/engine/role/with_tokens/starling/engine/core/member/role_list.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

constexpr MemberId members_max = 8;

/// A job whose members pass tokens around, over a network that loses, duplicates and reorders.
class TokenJob {
 public:
  TokenJob(MemberId initial_members, std::uint32_t passes, double loss) : network_(link(loss), 7) {
    std::vector<Member> members;
    for (MemberId id = 0; id < initial_members; ++id) members.push_back({id, 1, true, true, id});
    TokensOptions tokens;
    tokens.passes = passes;
    options_.role = std::make_shared<const TokensOptions>(tokens);
    options_.members_max = members_max;
    options_.first_configuration =
        std::make_shared<const Configuration>(first_configuration(std::move(members), 0, 2));
    for (MemberId id = 0; id < initial_members; ++id) start({id, 1, true, true, id});
  }

  /// Starts a member that is no initial member; it asks member 0.
  void join(MemberId id) {
    options_.first_configuration = nullptr;
    options_.seeds = {0};
    start({id, 1, true, true, id});
  }

  /// Calls `event(core, context)` of a member, and executes its effects.
  template <class Event>
  void run(MemberId id, Event event) {
    MemberEffects effects;
    event(*cores_[id], MemberContext{queue_.now(), random_, effects, &scratch_});
    for (MemberEffect& effect : effects) std::visit([&](auto& e) { execute(id, e); }, effect);
  }
  void begin_tokens(MemberId id, std::uint32_t count) {
    run(id, [&](auto& core, const auto& c) { core.on_input(c, BeginTokens{count}); });
  }
  /// Handles events until `is_over()`, or for a minute of virtual time.
  template <class Predicate>
  void run_until(Predicate is_over) {
    const Time limit = queue_.now() + 60s;
    while (!queue_.empty() && queue_.next_at() < limit && !is_over()) {
      const Event event = queue_.pop();
      if (const auto* envelope = std::get_if<Envelope>(&event))
        run(envelope->to, [&](auto& core, const auto& c) { core.on_packet(c, *envelope); });
      else if (const auto& [id, key] = std::get<1>(event); true)
        run(id, [&](auto& core, const auto& c) { core.on_timer(c, key); });
    }
  }
  /// Lets member `by` ask `to` a question, and returns the answer.
  Answer ask(MemberId by, std::optional<MemberId> to, Question question) {
    const std::uint64_t number = ++question_count_;
    run(by, [&](auto& core, const auto& c) { core.ask(c, to, {number, question}); });
    run_until([&] { return answers_.contains(number); });
    return answers_.at(number);
  }

  MemberCore& operator[](MemberId id) { return *cores_.at(id); }
  [[nodiscard]] const std::vector<std::pair<MemberId, Token>>& ended() const { return ended_; }
  [[nodiscard]] const std::set<MemberId>& excluded() const { return excluded_; }
  [[nodiscard]] std::uint64_t lost() const { return network_.counts().lost; }

 private:
  using Event = std::variant<Envelope, std::pair<MemberId, TimerKey>>;

  static sim::LinkOptions link(double loss) {
    sim::LinkOptions options;
    options.latency = Distribution{laws::Exponential{Time{2ms}}};
    options.loss = options.duplication = options.reordering = loss;
    options.delay = Distribution{laws::Exponential{Time{20ms}}};
    return options;
  }

  void start(Member self) {
    options_.self = self;
    cores_[self.id] = std::make_unique<MemberCore>(options_);
    run(self.id, [](auto& core, const auto& c) { core.start(c); });
  }

  void execute(MemberId id, Dispatch& dispatch) {
    for (const Time at : network_.send(queue_.now(), id, dispatch.envelope.to, 0))
      if (cores_.contains(dispatch.envelope.to)) queue_.push(at, dispatch.envelope);
  }
  void execute(MemberId id, const MemberTimer& timer) {
    queue_.push(timer.at, std::pair{id, timer.key});
  }
  void execute(MemberId id, const TokenEnded& ended) { ended_.emplace_back(id, ended.token); }
  void execute(MemberId id, const Excluded&) { excluded_.insert(id); }
  void execute(MemberId, MemberAnswer& answer) { answers_[answer.number] = answer.answer; }
  void execute(MemberId id, const Fail& fail) { ADD_FAILURE() << id << ": " << fail.why; }
  template <class Other>
  void execute(MemberId, const Other&) {
    ADD_FAILURE() << "an effect of another role, or of a job in one process";
  }

  MemberOptions options_;
  sim::Network network_;
  sim::Queue<Event> queue_;
  Random random_{3};
  EffectScratch scratch_;
  std::map<MemberId, std::unique_ptr<MemberCore>> cores_;
  std::vector<std::pair<MemberId, Token>> ended_;
  std::set<MemberId> excluded_;
  std::uint64_t question_count_ = 0;
  std::map<std::uint64_t, Answer> answers_;
};

TEST(Tokens, PassEachMemberOnceInARoundOverABadNetwork) {
  TokenJob job{4, 20, 0.2};
  for (const MemberId id : {0U, 2U}) job.begin_tokens(id, 10);
  job.run_until([&] { return job.ended().size() == 20; });
  ASSERT_EQ(job.ended().size(), 20U);
  EXPECT_GT(job.lost(), 0U);
  std::set<std::pair<MemberId, std::uint32_t>> tokens;
  for (const auto& [at, token] : job.ended()) {
    EXPECT_EQ(at, token.origin) << "5 rounds of 4 members";
    EXPECT_EQ(token.passes, 20U);
    EXPECT_TRUE(tokens.emplace(token.origin, token.number).second) << "a token that came twice";
  }
  for (MemberId id = 0; id < 4; ++id)
    EXPECT_EQ(std::get<TokenCount>(job.ask(1, id, AskTokens{})).received, 100U);
}

TEST(Tokens, PassMembersThatHaveJoined) {
  TokenJob job{3, 100, 0.1};
  job.begin_tokens(1, 5);
  job.join(5);
  job.run_until([&] { return job.ended().size() == 5; });
  ASSERT_EQ(job.ended().size(), 5U);
  EXPECT_EQ(job[5].state(), MemberCore::State::member);
  EXPECT_EQ(job[0].configuration()->members.size(), 4U);
  std::uint64_t received = 0;
  for (const MemberId id : {0U, 1U, 2U, 5U}) {
    const auto count = std::get<TokenCount>(job.ask(0, id, AskTokens{})).received;
    EXPECT_GT(count, 0U) << id;
    received += count;
  }
  EXPECT_EQ(received, 500U);
}

TEST(Tokens, AMemberWithoutTokensLeaves) {
  TokenJob job{3, 3, 0.1};
  job.begin_tokens(0, 1);
  job.run_until([&] { return job.ended().size() == 1; });
  job.run(2, [](auto& core, const auto& c) { core.leave(c); });
  job.run_until([&] { return job.excluded().contains(2); });
  EXPECT_EQ(job.excluded(), std::set<MemberId>{2});
  EXPECT_EQ(job[2].state(), MemberCore::State::excluded);
}

TEST(Tokens, QuestionsOfOtherRolesAreRefused) {
  TokenJob job{2, 1, 0};
  const auto refusal = [&](std::optional<MemberId> to, const Question& question) {
    return std::get<Refusal>(job.ask(0, to, question)).why;
  };
  EXPECT_EQ(refusal(1, AskStep{}), "a job of tokens has no such question");
  EXPECT_EQ(refusal(std::nullopt, AskTokens{}), "no member is named");
  EXPECT_EQ(std::get<Refusal>(job[1].answer(AskSteps{})).why,
            "a job of tokens has no such question");
}

TEST(Tokens, MembersRefuseMessagesThatNobodyMaySend) {
  const Configuration now = first_configuration({{0, 1}, {1, 1}}, 0, 2);
  TokensOptions tokens;
  tokens.passes = 3;
  const AnyRole role =
      make_role(std::make_shared<const TokensOptions>(tokens), {{0, 1}, members_max, nullptr});
  const auto is_valid = [&](const PeerMessage& message) {
    return core::is_valid({now, 1, members_max}, role, message);
  };
  EXPECT_TRUE(is_valid(Token{1, 0, 3}));
  EXPECT_FALSE(is_valid(Token{1, 0, 4})) << "passed on too often";
  EXPECT_FALSE(is_valid(Token{members_max, 0, 1})) << "no such member";
  EXPECT_FALSE(is_valid(StepQuery{1, 1})) << "a message of another role";
  EXPECT_TRUE(is_valid(MemberQuestion{1, AskTokens{}}));
  EXPECT_FALSE(is_valid(MemberQuestion{1, AskStep{}})) << "a question of another role";
  EXPECT_TRUE(is_valid(MemberAnswer{1, Refusal{"no"}}));
  EXPECT_FALSE(is_valid(MemberAnswer{1, WorkerStep{2}}));
}

TEST(Tokens, TravelInFrames) {
  Envelope envelope;
  envelope.to = 2;
  envelope.packet.payload = make_peer_message(Token{4, 5, 6});
  const wire::Frame frame = wire::encode(1, 2, envelope);
  EXPECT_TRUE(frame.body.empty());
  EXPECT_EQ(traffic_class_of(**envelope.packet.payload), TrafficClass::control);
  const auto decoded = wire::decode_envelope({.head = frame.head, .body = {}});
  ASSERT_TRUE(decoded);
  EXPECT_EQ(std::get<Token>(**decoded->envelope.packet.payload), (Token{4, 5, 6}));
  EXPECT_EQ(wire_size(Token{4, 5, 6}), 12U);
}

}  // namespace
}  // namespace starling::core
