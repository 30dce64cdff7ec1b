#include "starling/tools/train/recorder.hpp"

#include "starling/engine/work/gradients.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "tests/tools/program.hpp"
#include "tests/tools/train/linear_run.hpp"

namespace starling::program {
namespace {

using States = std::vector<core::RangeState>;

/// A bsp job of two workers and two shards that writes a checkpoint.
class Checkpoint : public testing::Test {
 protected:
  Checkpoint() {
    ready_.job.quiet = true;
    ready_.job.checkpoint = (folder_.path() / "c").string();
    auto& job = ready_.resolved.options.job;
    job.mode = core::Mode::central;
    job.barrier = barrier::Barrier{barrier::Bsp{}};
    job.workers = job.shards = 2;
  }

  /// Returns the states of the job's ranges after `round` rounds.
  [[nodiscard]] States states_after(core::Step round) const {
    const auto& job = ready_.resolved.options.job;
    const core::Layout layout = ready_.model->layout(job);
    States states = core::to_ranges<float>(layout, std::vector<float>(layout.size, 1.0F));
    for (auto& state : states) {
      state.round = state.updates = round;
      state.ledger.assign(job.workers, {.incarnation = 0, .step = round, .samples = 8 * round});
    }
    return states;
  }

  /// Gives these states to the recorder. Returns the content of the checkpoint after that, or
  /// `none` if there is no checkpoint.
  [[nodiscard]] std::string checkpoint_after(const States& states) {
    Recorder{ready_, {}}.on_checkpoint(states);
    return folder_.has("c") ? folder_.read("c") : "none";
  }

  Folder folder_;
  Registry registry_ = with_built_in({});
  AnyData data_ = load_source(registry_, "linear:d=20000,n=4", 1).value();
  PreparedRun ready_ = linear_run(registry_, data_);
};

TEST_F(Checkpoint, IsReplacedByALaterOne) {
  const std::string third = checkpoint_after(states_after(3));
  EXPECT_NE(third, "none");
  EXPECT_NE(checkpoint_after(states_after(4)), third);
}

/// A job that failed half-way through a round leaves ranges at different rounds.
TEST_F(Checkpoint, IsNotReplacedIfRangesAreAtDifferentRounds) {
  const std::string third = checkpoint_after(states_after(3));
  States at_different_rounds = states_after(4);
  ASSERT_EQ(at_different_rounds.size(), 2U);
  at_different_rounds[1] = states_after(5)[1];
  EXPECT_EQ(checkpoint_after(at_different_rounds), third);
}

TEST_F(Checkpoint, IsNotReplacedIfValuesAreNotFinite) {
  const std::string third = checkpoint_after(states_after(3));
  const auto& job = ready_.resolved.options.job;
  const core::Layout layout = ready_.model->layout(job);
  std::vector<float> w(layout.size, 1.0F);
  w.back() = std::numeric_limits<float>::infinity();
  States states = states_after(4);
  const States infinite = core::to_ranges<float>(layout, w);
  for (auto& state : states) state.value = infinite[state.range].value;
  EXPECT_EQ(checkpoint_after(states), third);
}

TEST_F(Checkpoint, IsNotWrittenBeforeTheFirstUpdate) {
  EXPECT_EQ(checkpoint_after(states_after(0)), "none");
  EXPECT_EQ(checkpoint_after({}), "none");
}

}  // namespace
}  // namespace starling::program
