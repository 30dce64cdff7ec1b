/// Tests that every barrier runs on nodes in every mode, or is refused with the reason.
/// job/matrix_test.cpp does so for jobs in one process.
#include <gtest/gtest.h>

#include "starling/engine/core/mode.hpp"
#include "tests/actor/cluster/cluster.hpp"
#include "tests/barrier/examples.hpp"

namespace starling::actor {
namespace {

class BarriersOnNodes : public Cluster, public testing::WithParamInterface<core::Mode> {};

TEST_P(BarriersOnNodes, RunOrAreRefusedWithTheReason) {
  constexpr std::size_t workers = 5;
  const core::Mode mode = GetParam();
  add(3);
  std::size_t runs = 0;
  for (const barrier::Barrier& barrier : barrier::all_barriers(2)) {
    const std::string text = barrier::print(barrier);
    SCOPED_TRACE(text);
    ++job_;
    const auto started = submit(
        job_ % 3, counting_settings(core::print(mode).c_str(), text.c_str(), "5", "20", "1"));
    const auto valid = core::check(mode, barrier, core::default_recheck(mode), workers);
    ASSERT_EQ(started.ok(), valid.ok())
        << (started.ok() ? valid.error().message : started.error().message);
    if (!valid) {
      EXPECT_NE(started.error().message.find(valid.error().message), std::string::npos)
          << started.error().message;
      continue;
    }
    ASSERT_TRUE(wait_until([&] { return all_done(); }));
    // The gradients of Counters are no means over samples, as micro-batches require.
    const auto states = model();
    ASSERT_FALSE(states.empty());
    if (!barrier::hands_in_early(barrier)) expect_exact_counts(states);
    for (const auto& node : nodes_)
      ASSERT_TRUE(client_->ask_for<wire::Done>(node->address(), wire::CloseJob{job_},
                                               std::chrono::seconds{30}));
    ++runs;
  }
  EXPECT_GE(runs, 10U);
}

INSTANTIATE_TEST_SUITE_P(In, BarriersOnNodes,
                         testing::Values(core::Mode::central, core::Mode::hybrid, core::Mode::peer),
                         [](const auto& param) { return core::print(param.param); });

}  // namespace
}  // namespace starling::actor
