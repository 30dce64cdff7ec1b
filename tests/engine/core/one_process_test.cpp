/// Tests the cores of a job in one process, whose members send one another LocalMessages.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>

#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/core/member/message_validator.hpp"

namespace starling::core {
namespace {

constexpr std::size_t worker_count = 3;

/// The members of a job with one parameter, to which each step adds 1. Messages travel one by one.
class Members {
 public:
  Members(Mode mode, const char* barrier, Step last_step)
      : configuration_(std::make_shared<const Configuration>(one_process_configuration(
            mode, worker_count, mode == Mode::peer ? worker_count : 2, std::vector<OwnerId>{0}))) {
    Layout layout = make_layout({{.name = "sum", .shape = {1}}}, sizeof(double), 1);
    const auto shared_layout = std::make_shared<const Layout>(std::move(layout));
    const auto zero = std::make_shared<const std::vector<RangeState>>(
        1, RangeState{.range = 0,
                      .value = {Buffer::zeros(1, sizeof(double)), 0, 1, nullptr},
                      .slots = {},
                      .ledger = {}});
    TrainingOptions training;
    training.mode = mode;
    training.worker.barrier = barrier::parse(barrier).value();
    training.worker.recheck = default_recheck(mode);
    training.worker.last_step = last_step;
    training.exchange.layout = shared_layout;
    training.exchange.workers = training.exchange.workers_max = worker_count;
    training.exchange.applier =
        merge_applier<double>([](const auto&, auto value, auto update) { value[0] += update[0]; });
    training.exchange.initial_states = zero;
    const auto role = std::make_shared<const TrainingOptions>(std::move(training));
    for (const Member& self : configuration_->members) {
      MemberOptions options;
      options.self = self;
      options.role = role;
      options.members_max = static_cast<MemberId>(configuration_->members.size());
      options.first_configuration = configuration_;
      cores_.emplace_back(std::move(options));
    }
    for (const Member& self : configuration_->members)
      run(self.id, [](auto& core, const auto& context) { core.prepare(context); });
  }

  MemberCore& operator[](MemberId id) { return cores_[id]; }
  [[nodiscard]] const Worker& worker(MemberId id) const {
    return *cores_[id].role<Training>().worker();
  }
  [[nodiscard]] const Configuration& configuration() const { return *configuration_; }
  [[nodiscard]] MemberId owner() const { return configuration_->ranges[0].owners[0].id; }

  /// Calls `event(core, context)` of a member, and executes its effects.
  template <class Event>
  void run(MemberId id, Event event) {
    MemberEffects effects;
    event(cores_[id], MemberContext{now_, random_, effects});
    for (MemberEffect& effect : effects) std::visit([&](auto& e) { execute(id, e); }, effect);
  }
  void start(MemberId id) {
    run(id, [](auto& core, const auto& context) { core.start(context); });
  }
  void receive(const LocalMessage& local) {
    run(local.to, [&](auto& core, const auto& context) { core.on_local_message(context, local); });
  }
  /// Delivers messages and fires timers until there are none.
  void run_to_end() {
    while (!messages_.empty() || !timers_.empty()) {
      if (!messages_.empty()) {
        const LocalMessage next = std::move(messages_.front());
        messages_.pop_front();
        receive(next);
      } else {
        const auto [at, timer] = *timers_.begin();
        timers_.erase(timers_.begin());
        now_ = std::max(now_, at);
        run(timer.first,
            [key = timer.second](auto& core, const auto& context) { core.on_timer(context, key); });
      }
    }
  }
  std::vector<RangeState> snapshot(MemberId id) {
    observed_.clear();
    run(id, [](auto& core, const auto& context) { core.on_input(context, Snapshot{7}); });
    return observed_;
  }
  /// Lets member `by` ask a question, and returns the answer.
  Answer ask(MemberId by, std::optional<MemberId> to, Question question) {
    const std::uint64_t number = ++question_count_;
    run(by, [&](auto& core, const auto& context) { core.ask(context, to, {number, question}); });
    run_to_end();
    EXPECT_TRUE(answers_.contains(number));
    return answers_[number];
  }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }
  std::deque<LocalMessage>& messages() { return messages_; }
  /// False: computations never end.
  bool computes = true;

 private:
  void execute(MemberId, const Dispatch&) { ADD_FAILURE() << "a packet in a job of one process"; }
  void execute(MemberId, LocalMessage& local) { messages_.push_back(std::move(local)); }
  void execute(MemberId id, const MemberTimer& timer) {
    timers_.emplace(timer.at, std::pair{id, timer.key});
  }
  void execute(MemberId, const Plan&) { ADD_FAILURE() << "nothing to plan"; }
  void execute(MemberId id, const Compute& compute) {
    if (!computes) return;
    auto one = Buffer::make<double>(1);
    one->as<double>()[0] = 1;
    Update update{.parts = {{0, {std::move(one), 0, 1, nullptr}}}, .samples = 1};
    run(id, [&](auto& core, const auto& context) {
      core.on_input(context, ComputeResult{compute.step, std::move(update)});
    });
  }
  void execute(MemberId, const HandInNow&) { ADD_FAILURE() << "no worker hands in early"; }
  void execute(MemberId, const Done&) {}
  void execute(MemberId, const IsIn<FlowOutputs> auto&) {
    ADD_FAILURE() << "an effect of another role";
  }
  void execute(MemberId, const Fail& fail) { failures_.push_back(fail.why); }
  void execute(MemberId, const Excluded&) { ADD_FAILURE() << "excluded from its own process"; }
  void execute(MemberId, const ObservedState& observed) { observed_.push_back(*observed.state); }
  void execute(MemberId, MemberAnswer& answer) {
    answers_[answer.number] = std::move(answer.answer);
  }

  ConfigurationPtr configuration_;
  std::deque<MemberCore> cores_;
  Time now_{};
  Random random_ = Random::stream(1, 2);
  std::deque<LocalMessage> messages_;
  std::multimap<Time, std::pair<MemberId, TimerKey>> timers_;
  std::vector<RangeState> observed_;
  std::vector<std::string> failures_;
  std::uint64_t question_count_ = 0;
  std::map<std::uint64_t, Answer> answers_;
};

/// Returns why the answer is a refusal; empty if it is none.
std::string refusal_of(const Answer& answer) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? "" : refusal->why;
}

TEST(OneProcessConfiguration, HasWorkersThenServersThenTheCoordinator) {
  const Configuration central = one_process_configuration(Mode::central, 3, 2, assign_ranges(5, 2));
  ASSERT_EQ(central.members.size(), 6U);
  for (const Member& member : central.members) {
    EXPECT_EQ(member.works, member.id < 3);
    EXPECT_EQ(member.owns, member.id == 3 || member.id == 4);
  }
  EXPECT_EQ(central.coordinator, 5U);
  for (const Ownership& range : central.ranges) {
    ASSERT_EQ(range.owners.size(), 1U);
    EXPECT_TRUE(central.find(range.owners[0].id)->owns);
  }
  EXPECT_TRUE(central.is_of_one_process());

  const Configuration peers = one_process_configuration(Mode::peer, 4, 4, assign_ranges(9, 4));
  EXPECT_EQ(peers.members.size(), 4U);
  EXPECT_FALSE(peers.coordinator);
  std::vector<int> ranges(4);
  for (const Ownership& range : peers.ranges) ++ranges.at(range.owners.at(0).id);
  EXPECT_EQ(std::ranges::max(ranges) - std::ranges::min(ranges), 1) << "any number owns ranges";
}

TEST(OneProcessConfiguration, IsNotAcceptedFromANode) {
  const auto only = std::make_shared<const Configuration>(
      one_process_configuration(Mode::peer, 2, 2, std::vector<OwnerId>{1}));
  EXPECT_FALSE(is_valid(only, 8)) << "without a council it would cut all links";
}

class EveryBarrier : public testing::TestWithParam<std::pair<Mode, const char*>> {};

INSTANTIATE_TEST_SUITE_P(OneProcess, EveryBarrier,
                         testing::Values(std::pair{Mode::central, "bsp"},
                                         std::pair{Mode::central, "ssp:s=1"},
                                         std::pair{Mode::hybrid, "pssp:s=1,beta=2"},
                                         std::pair{Mode::peer, "pbsp:beta=1"},
                                         std::pair{Mode::peer, "asp"}));

TEST_P(EveryBarrier, AppliesEachUpdateOnceWhateverTheOrderOfStarts) {
  for (const bool is_workers_first : {false, true}) {
    Members members{GetParam().first, GetParam().second, 20};
    const auto count = static_cast<MemberId>(members.configuration().members.size());
    if (is_workers_first) {
      for (MemberId id = 0; id < count; ++id) {
        members.start(id);
        // The messages reach members whose workers have not started.
        for (; !members.messages().empty(); members.messages().pop_front())
          members.receive(LocalMessage{members.messages().front()});
      }
    } else {
      for (MemberId id = count; id-- > 0;) members.start(id);
    }
    members.run_to_end();
    EXPECT_TRUE(members.failures().empty());
    for (MemberId id = 0; id < worker_count; ++id) EXPECT_TRUE(members.worker(id).is_done());
    const auto states = members.snapshot(members.owner());
    ASSERT_EQ(states.size(), 1U);
    EXPECT_EQ(states[0].request_id, 7U);
    EXPECT_EQ(states[0].ledger.size(), worker_count);
    EXPECT_EQ(states[0].value.as<double>()[0], 20.0 * worker_count);
  }
}

TEST(OneProcess, IgnoresMessagesOfOtherIncarnationsEpochsAndRoles) {
  Members members{Mode::central, "bsp", 20};
  const MemberId coordinator = *members.configuration().coordinator;
  for (MemberId id = coordinator + 1; id-- > 0;) members.start(id);
  // Worker 0 has pulled, computed and pushed: it waits at the barrier for the others.
  for (auto& messages = members.messages(); !messages.empty();) {
    const LocalMessage next = std::move(messages.front());
    messages.pop_front();
    if (next.from == 0 || next.to == 0) members.receive(next);
  }
  // Under bsp its push is acknowledged, and the coordinator has its arrival.
  ASSERT_TRUE(members.worker(0).is_waiting());
  ASSERT_EQ(members.worker(0).step(), 1U);
  const auto proceed = make_peer_message(Proceed{1});
  members.receive({coordinator, 1, 0, 1, proceed});
  EXPECT_TRUE(members.worker(0).is_waiting()) << "another incarnation";
  members.receive({coordinator, 0, 0, 2, proceed});
  EXPECT_TRUE(members.worker(0).is_waiting()) << "another epoch";
  members.receive({1, 0, 0, 1, proceed});
  EXPECT_TRUE(members.worker(0).is_waiting()) << "a worker lets no one pass";
  members.receive({99, 0, 0, 1, proceed});
  EXPECT_TRUE(members.worker(0).is_waiting()) << "no member";
  members.receive({coordinator, 0, 0, 1, proceed});
  EXPECT_FALSE(members.worker(0).is_waiting());
}

TEST(OneProcess, AMemberAnswersAndStopsBeforeItsWorkerStarts) {
  for (const Mode mode : {Mode::central, Mode::hybrid, Mode::peer}) {
    Members members{mode, "asp", barrier::unlimited};
    EXPECT_EQ(members.snapshot(members.owner()).size(), 1U);
    const auto count = static_cast<MemberId>(members.configuration().members.size());
    const auto stop = [](auto& core, const auto& context) { core.stop(context); };
    for (MemberId id = 0; id < count; ++id)
      if (mode != Mode::central || id == members.configuration().coordinator) members.run(id, stop);
    for (MemberId id = 0; id < count; ++id) members.start(id);
    members.run_to_end();
    for (MemberId id = 0; id < worker_count; ++id) {
      EXPECT_TRUE(members.worker(id).is_done()) << "the job has no last step";
      EXPECT_LE(members.worker(id).step(), 1U);
    }
  }
}

TEST(OneProcess, AFailedMemberStillHandsOutItsRanges) {
  Members members{Mode::peer, "asp", 20};
  members.computes = false;
  for (MemberId id = 0; id < worker_count; ++id) members.start(id);
  const MemberId owner = members.owner();
  for (int attempt = 0; attempt < 3; ++attempt)
    members.run(owner, [&](auto& core, const auto& context) {
      core.on_input(context, StepFailure{members.worker(owner).step(), "no memory"});
    });
  ASSERT_EQ(members.failures().size(), 1U) << "three failed attempts end the job";
  EXPECT_EQ(members.snapshot(owner).size(), 1U);
}

TEST(Questions, AreAnsweredByTheMemberThatIsNamedOrInCharge) {
  Members members{Mode::central, "bsp", 5};
  for (MemberId id = 0; id < members.configuration().members.size(); ++id) members.start(id);
  members.run_to_end();
  const MemberId owner = members.owner();
  const MemberId coordinator = *members.configuration().coordinator;
  // A worker, the owner, the coordinator and the asked member itself ask.
  for (const MemberId by : {0U, 1U, owner, coordinator}) {
    EXPECT_EQ(std::get<WorkerStep>(members.ask(by, 1, AskStep{})).step, 5U);
    EXPECT_EQ(std::get<StepsReport>(members.ask(by, std::nullopt, AskSteps{})).max_lag, 1U);
    const Answer answer = members.ask(by, std::nullopt, AskValue{0, nullptr});
    EXPECT_EQ(std::get<Value>(answer).value.as<double>()[0], 15);
    EXPECT_EQ(std::get<Value>(members.ask(by, owner, AskValue{0, nullptr})).range, 0U);
  }
}

TEST(Questions, AreRefusedByMembersWithoutThePart) {
  Members members{Mode::central, "bsp", 5};
  for (MemberId id = 0; id < members.configuration().members.size(); ++id) members.start(id);
  members.run_to_end();
  const MemberId owner = members.owner();
  const auto refusal = [&](std::optional<MemberId> to, Question question) {
    return refusal_of(members.ask(0, to, std::move(question)));
  };
  EXPECT_EQ(refusal(owner, AskStep{}), "server (member 3) computes no updates");
  EXPECT_EQ(refusal(1, AskSteps{}), "worker 1 is not the coordinator");
  EXPECT_EQ(refusal(1, AskValue{0, nullptr}),
            "range 0: worker 1 does not own it, or the range lacks these rows; valid: ascending "
            "row numbers, each once");
  EXPECT_EQ(refusal(std::nullopt, AskValue{1, nullptr}), "range 1: valid: below 1");
  using RowList = std::vector<std::uint32_t>;
  for (const RowList& rows : {RowList{3}, RowList{0, 0}})
    EXPECT_EQ(refusal(owner, AskValue{0, std::make_shared<const RowList>(rows)}),
              "range 0: server (member 3) does not own it, or the range lacks these rows; valid: "
              "ascending row numbers, each once");
  EXPECT_EQ(refusal(77, AskStep{}), "member 77 is not in the job, or not any more");
  EXPECT_EQ(refusal(std::nullopt, AskStep{}), "no member is named");
  Members peers{Mode::peer, "asp", 5};
  peers.start(0);
  EXPECT_EQ(refusal_of(peers.ask(0, std::nullopt, AskSteps{})),
            "no member keeps the steps of all workers in this mode");
}

}  // namespace
}  // namespace starling::core
