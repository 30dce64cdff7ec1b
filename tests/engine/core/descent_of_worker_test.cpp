/// Tests that a worker whose barrier moves with the descent of the loss gives each step its former
/// step, and its barrier the descent.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <variant>
#include <vector>

#include "starling/engine/core/worker/worker.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

class OneWorker {
 public:
  OneWorker(const char* barrier, bool central) : worker_(options(barrier, central)) {
    worker_.start(context());
  }

  /// Makes the current step up to the barrier. Returns its Compute effect.
  Compute make_step(std::optional<barrier::Descent> descent) {
    const Step step = worker_.step();
    out_.clear();
    worker_.on_values(context(), step, {Value{0, step, slice()}});
    Compute compute = *std::get_if<Compute>(&out_.back());
    out_.clear();
    now_ += 10ms;
    worker_.on_update(context(), step, {.parts = {{0, slice()}}, .samples = 1, .descent = descent});
    worker_.on_written(context(), step + 1);
    return compute;
  }

  void pass() { worker_.on(context(), Proceed{worker_.step()}); }

  [[nodiscard]] const Arrived& arrived() const {
    for (const Effect& effect : out_)
      if (const auto* send = std::get_if<Send>(&effect))
        if (const auto* found = std::get_if<Arrived>(&send->message)) return *found;
    ADD_FAILURE() << "no Arrived";
    static const Arrived none{};
    return none;
  }

  Worker& worker() { return worker_; }

 private:
  static WorkerOptions options(const char* barrier, bool central) {
    WorkerOptions options;
    options.central = central;
    options.barrier = barrier::parse(barrier).value();
    options.workers = std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1});
    return options;
  }
  static Slice slice() { return {Buffer::zeros(2, sizeof(double)), 0, 2, nullptr}; }
  Context context() { return {now_, random_, out_}; }

  Time now_{};
  Random random_{1};
  Effects out_;
  Worker worker_;
};

TEST(DescentOfWorker, IsComputedFromItsFormerStep) {
  OneWorker one{"tuned:progress", true};
  EXPECT_EQ(one.make_step(std::nullopt).former, nullptr) << "there is no step before the first";
  EXPECT_EQ(one.arrived().descent, std::nullopt);
  one.pass();
  const auto former = one.make_step(barrier::Descent{2, 1}).former;
  ASSERT_NE(former, nullptr);
  EXPECT_EQ(former->values.size(), 1U);
  EXPECT_EQ(former->values[0].after_step, 0U);
  EXPECT_EQ(former->update.size(), 1U);
  EXPECT_EQ(one.arrived().descent, (barrier::Descent{2, 1})) << "the coordinator has the tuner";
}

TEST(DescentOfWorker, MovesTheBarrierOfItsGate) {
  OneWorker one{"tuned:progress", false};
  (void)one.make_step(barrier::Descent{1, -1});
  ASSERT_TRUE(one.worker().gate()->tuner());
  EXPECT_GT(one.worker().gate()->tuner()->state().waiting_share, 0.02);
}

TEST(DescentOfWorker, IsNotComputedForOtherBarriers) {
  for (const char* barrier : {"tuned:waiting=5%", "pssp:s=4,beta=1", "asp"}) {
    OneWorker one{barrier, true};
    (void)one.make_step(std::nullopt);
    one.pass();
    EXPECT_EQ(one.make_step(std::nullopt).former, nullptr) << barrier;
  }
}

}  // namespace
}  // namespace starling::core
