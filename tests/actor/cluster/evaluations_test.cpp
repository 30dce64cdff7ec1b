/// A node evaluates models that clients send in parts.
#include "starling/actor/cluster/evaluations.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/waiting.hpp"

namespace starling::actor {
namespace {

constexpr wire::JobId job_id = 7;

/// A job whose model has three ranges. The metric of a model is the sum of the numbers of updates
/// of its ranges.
class ThreeRanges final : public PreparedJob {
 public:
  /// Evaluations wait until `released` is ready, if it is valid.
  explicit ThreeRanges(std::shared_future<void> released = {}) : released_(std::move(released)) {}

  [[nodiscard]] const JobOptions& options() const override { return options_; }
  [[nodiscard]] std::size_t ranges() const override { return 3; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 1; }
  [[nodiscard]] Result<std::unique_ptr<LocalJob>> make_local_job(LocalJobOptions) const override {
    return Error{"is not run"};
  }
  [[nodiscard]] Result<void> check_range(const core::RangeState& state) const override {
    if (state.updates < 100) return {};
    return Error{"range " + std::to_string(state.range) + " is not of this model"};
  }
  [[nodiscard]] Result<wire::ModelMetrics> evaluate(
      const wire::EvaluateModel& request) const override {
    if (released_.valid()) released_.wait();
    if (request.metric == "throw") throw std::runtime_error{"the model throws"};
    double sum = 0;
    for (const core::RangeState& state : request.states) sum += static_cast<double>(state.updates);
    return wire::ModelMetrics{.metrics = {{"sum", sum}}};
  }

 private:
  JobOptions options_;
  std::shared_future<void> released_;
};

class EvaluationsTest : public testing::Test {
 protected:
  ~EvaluationsTest() override { EXPECT_EQ(evaluations_.close(), 0U); }

  /// Returns a request with the ranges `ids`; range r has r + 1 updates.
  static wire::EvaluateModel request(std::uint64_t evaluation,
                                     const std::vector<core::RangeId>& ids) {
    wire::EvaluateModel message;
    message.job = job_id;
    message.evaluation = evaluation;
    for (const core::RangeId id : ids) {
      core::RangeState& state = message.states.emplace_back();
      state.range = id;
      state.updates = id + 1;
    }
    return message;
  }
  /// Sends a request, and returns the future reply.
  std::future<wire::ReplyBody> send(const wire::EvaluateModel& message) {
    auto promise = std::make_shared<std::promise<wire::ReplyBody>>();
    auto reply = promise->get_future();
    loop_.post([this, message, promise] {
      evaluations_.answer(message, job_,
                          [promise](wire::ReplyBody body) { promise->set_value(std::move(body)); });
    });
    return reply;
  }
  /// Sends a request, and waits for the metrics; a std::bad_variant_access ends the test if the
  /// node refuses.
  wire::ModelMetrics ask(const wire::EvaluateModel& message) {
    return std::get<wire::ModelMetrics>(send(message).get());
  }
  std::string refusal_of(const wire::EvaluateModel& message) {
    return std::get<wire::Refused>(send(message).get()).why;
  }

  EventLoop loop_;
  Evaluations evaluations_{loop_};
  std::shared_ptr<const PreparedJob> job_ = std::make_shared<ThreeRanges>();
};

TEST_F(EvaluationsTest, EvaluateAModelOnceAllRangesHaveArrived) {
  wire::ModelMetrics reply = ask(request(1, {0}));
  EXPECT_FALSE(reply.is_done);
  EXPECT_EQ(reply.next, 1U);
  reply = ask(request(1, {1, 2}));
  EXPECT_TRUE(reply.is_done);
  EXPECT_EQ(reply.next, 3U);
  ASSERT_EQ(reply.metrics.size(), 1U);
  EXPECT_EQ(reply.metrics[0].second, 1 + 2 + 3);
}

TEST_F(EvaluationsTest, TakeEachRangeOnceAndAskForRangesAfterAGapAgain) {
  EXPECT_EQ(ask(request(1, {0, 1})).next, 2U);
  EXPECT_EQ(ask(request(1, {0, 1})).next, 2U) << "the request was repeated";
  EXPECT_EQ(ask(request(2, {0, 2})).next, 1U) << "range 1 is missing";
  const wire::ModelMetrics reply = ask(request(1, {1, 2}));
  EXPECT_EQ(reply.metrics.at(0).second, 6);
  EXPECT_EQ(ask(request(1, {})).metrics.at(0).second, 6) << "the metrics are kept";
}

TEST_F(EvaluationsTest, RefuseARangeThatDoesNotFit) {
  wire::EvaluateModel message = request(1, {0, 1});
  message.states[1].updates = 100;
  EXPECT_EQ(refusal_of(message), "range 1 is not of this model");
  EXPECT_EQ(ask(request(1, {0})).next, 1U) << "nothing of the refused model is left";
}

TEST_F(EvaluationsTest, SayWhatTheModelThrows) {
  wire::EvaluateModel message = request(1, {0, 1, 2});
  message.metric = "throw";
  EXPECT_EQ(refusal_of(message), "the model throws");
}

TEST_F(EvaluationsTest, ReplyBeforeALongEvaluationHasEnded) {
  std::promise<void> release;
  job_ = std::make_shared<ThreeRanges>(release.get_future().share());
  const wire::ModelMetrics early = ask(request(1, {0, 1, 2}));
  EXPECT_FALSE(early.is_done);
  EXPECT_EQ(early.next, 3U);
  auto late = send(request(1, {}));
  release.set_value();
  EXPECT_TRUE(std::get<wire::ModelMetrics>(late.get()).is_done);
}

TEST_F(EvaluationsTest, KeepFewModelsOfAJobAndRefuseMoreWhileAllAreComputed) {
  // A third model takes the place of the one that was used least recently.
  EXPECT_EQ(ask(request(1, {0, 1})).next, 2U);
  EXPECT_EQ(ask(request(2, {0})).next, 1U);
  EXPECT_EQ(ask(request(3, {0})).next, 1U);
  EXPECT_EQ(ask(request(1, {})).next, 0U) << "was forgotten";

  std::promise<void> release;
  job_ = std::make_shared<ThreeRanges>(release.get_future().share());
  loop_.call([this] {
    evaluations_.forget(job_id);
    return true;
  });
  auto first = send(request(4, {0, 1, 2}));
  auto second = send(request(5, {0, 1, 2}));
  EXPECT_EQ(refusal_of(request(6, {0})), "this node still evaluates other models of the job");
  release.set_value();
  first.get();
  second.get();
}

TEST_F(EvaluationsTest, RefuseARequestThatWaitsWhenItsJobIsClosed) {
  std::promise<void> release;
  job_ = std::make_shared<ThreeRanges>(release.get_future().share());
  auto reply = send(request(1, {0, 1, 2}));
  loop_.call([this] {
    evaluations_.forget(job_id);
    return true;
  });
  const bool is_refused =
      reply.wait_for(std::chrono::milliseconds{500}) == std::future_status::ready;
  release.set_value();
  ASSERT_TRUE(is_refused);
  EXPECT_EQ(std::get<wire::Refused>(reply.get()).why, "the job was closed");
}

TEST(ClosedEvaluations, CountThoseThatHang) {
  EventLoop loop;
  Evaluations evaluations{loop};
  std::promise<void> release;
  const auto job = std::make_shared<ThreeRanges>(release.get_future().share());
  wire::EvaluateModel message;
  message.states.resize(3);
  for (core::RangeId id = 0; id < 3; ++id) message.states[id].range = id;
  loop.call([&] {
    evaluations.answer(message, job, [](const wire::ReplyBody&) {});
    return true;
  });
  EXPECT_EQ(evaluations.close(), 1U);
  release.set_value();
  EXPECT_TRUE(wait_until([&] { return evaluations.close() == 0; }));
}

}  // namespace
}  // namespace starling::actor
