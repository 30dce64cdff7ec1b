/// Tests that random faults stay within what a replicated job must survive.
#include <gtest/gtest.h>

#include "tests/engine/sim/chaos/run_text.hpp"

namespace starling::sim {
namespace {

/// The range of nodes 3, 4 and 5 has three owners while it moves to node 3. Node 3 has failed, and
/// no other knows. If node 4 failed, too, the next configuration could still keep these two.
TEST(FaultBudget, CountsFailedOwnersThatTheNextConfigurationMayKeep) {
  const auto report = run_text(R"(seed 202103
mode hybrid
exchange owners
cache no
barrier pssp:s=2,beta=2
recheck notify
workers 3
servers 3
ranges 3
copies 2
steps 17
loss 0.01
duplication 0.1
reordering 0.19
latency 1ms
compute 5ms
straggling 1
beyond no
fault suspect:at=44275us,node=0,lasts=161116us
fault suspect:at=114877us,node=3,lasts=24115us
fault crash:at=196215us,node=3,after=2
fault join:at=201031us,node=6
fault crash:at=204369us,node=4,lasts=1122824us,after=4
faults 5
)");
  EXPECT_EQ(report.violation, "");
  EXPECT_EQ(report.faults_refused, 1U);
}

/// Nodes 6 and 7 are wrongly suspected, excluded, and join again together. Then the two have the
/// state of the range's optimizer, and would both be excluded again if the suspicions went on.
TEST(FaultBudget, LimitsSuspicionsOfMembersThatJoinAgain) {
  const auto report = run_text(R"(seed 88090
mode peer
exchange allreduce:parts,overlap
cache no
barrier bsp
recheck interval:auto
workers 8
servers 0
ranges 6
copies 2
steps 11
loss 0
duplication 0
reordering 0
latency 1ms
compute 5ms
straggling 1
beyond no
fault crash:at=16380us,node=1,after=6
fault suspect:at=153786us,node=6,lasts=891155us
fault suspect:at=188502us,node=7,lasts=74425us
faults 3
)");
  EXPECT_EQ(report.violation, "");
}

/// Nodes 0 and 1 have the state of the range's optimizer. Each is cut off from all others.
TEST(FaultBudget, AddsUpPartitions) {
  const auto report = run_text(R"(seed 328463
mode peer
exchange allreduce:parts,overlap
cache no
barrier bsp
recheck interval:auto
workers 5
servers 0
ranges 1
copies 2
steps 19
loss 0
duplication 0
reordering 0
latency 1ms
compute 5ms
straggling 1
beyond no
fault one-way-partition:at=32755us,group=1,lasts=440556us
fault partition:at=131829us,group=2,lasts=334430us
faults 2
)");
  EXPECT_EQ(report.violation, "");
  EXPECT_EQ(report.faults_refused, 1U);
}

/// Node 2 has come back after a wrong suspicion that goes on. Nodes 1 and 2 are to have the state
/// of the optimizer of range 1; another node still has it, and drops it soon. So one of the two may
/// be suspected, and not both.
TEST(FaultBudget, DoesNotCountStateThatIsDroppedSoon) {
  const auto report = run_text(R"(seed 2091480
mode peer
exchange allreduce:parts,overlap
cache no
barrier bsp
recheck notify
workers 7
servers 0
ranges 5
copies 2
steps 17
loss 0
duplication 0
reordering 0
latency 1ms
compute 5ms
straggling 1
beyond no
fault suspect:at=60650us,node=2,lasts=848126us
fault suspect:at=158707us,node=1,lasts=92109us
faults 2
)");
  EXPECT_EQ(report.violation, "");
}

}  // namespace
}  // namespace starling::sim
