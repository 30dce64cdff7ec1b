/// A frozen node receives nothing. The drill checks that the nodes that send to it under load use
/// bounded memory.
#include <algorithm>
#include <map>

#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class Frozen : public Drill {};

INSTANTIATE_TEST_SUITE_P(In, Frozen, testing::ValuesIn(job_modes), name_of);

/// The most MiB in flight from one owner to all members: `credit_bytes` in
/// actor/cluster/local_job.cpp.
constexpr std::size_t credit_mib = 64;

TEST_P(Frozen, NodesDoNotMakeTheMemoryOfSendersGrow) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(3));
  if (IsSkipped()) return;
  // 20 MB of parameters, in some 80 ranges.
  fleet_->submit(1,
                 "--data digits:n=3000 --model mlp:784-6000-10 --batch 4 --workers 6 --seconds "
                 "90 --optimizer sgd:lr=0.01 --json --quiet --save m.safetensors " +
                     flags(GetParam()));
  // After 20 steps, every buffer that a step needs has been allocated.
  ASSERT_TRUE(fleet_->watch(60s, [&] { return fleet_->highest_step() > 20; }));
  std::map<std::size_t, std::size_t> kib_before;
  for (const std::size_t node : {0U, 1U}) kib_before[node] = fleet_->rss_kib(node);
  fleet_->freeze(2);
  const auto largest_kib_in_30_s = [&] {
    std::map<std::size_t, std::size_t> most = kib_before;
    (void)fleet_->watch(30s, [&] {
      for (auto& [node, kib] : most) kib = std::max(kib, fleet_->rss_kib(node));
      return false;
    });
    return most;
  };
  auto first = largest_kib_in_30_s();
  auto second = largest_kib_in_30_s();
  fleet_->thaw(2);
  for (const auto& [node, kib] : kib_before) {
    report("n" + std::to_string(node) + "_mib",
           std::to_string(kib / 1024) + " before, at most " + std::to_string(first[node] / 1024) +
               " in the first half minute, " + std::to_string(second[node] / 1024) +
               " in the second");
    // Allows 64 MiB for everything else.
    EXPECT_LE(std::max(first[node], second[node]), kib + (credit_mib + 64) * std::size_t{1024});
  }
  (void)fleet_->watch(120s, [] { return false; });
  ASSERT_FALSE(fleet_->is_training()) << "the job does not end";
  const ProgramResult ran = fleet_->finish();
  EXPECT_EQ(ran.code, 0) << ran.err;
  report("updates", std::to_string(static_cast<long>(number_in(ran.out, "updates"))));
  report_pause();
}

}  // namespace
}  // namespace starling::program
