/// Nodes, as processes on this machine, that die while a job is prepared, whose death leaves a job
/// without a majority, or that have the name of another node.
#include <algorithm>
#include <chrono>

#include "tests/tools/cluster/nodes.hpp"
#include "tests/tools/output.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class NodeLosses : public Nodes {
 protected:
  /// Returns what node number `node` has logged.
  std::string log(std::size_t node) { return processes_.at(node)->err(); }
  /// Freezes node c, without which the job cannot begin, and submits the job to node a.
  Process submit_with_c_frozen(const Folder& folder, const std::string& more_flags = {}) {
    processes_[2]->signal(SIGSTOP);
    return {folder, STARLING_PROGRAM, job_of_three(0, "--steps 20 --quiet --json " + more_flags)};
  }
  std::vector<std::string> endless_job(const std::string& more_flags) {
    return job_of_three(0, "--steps 1000000 " + more_flags);
  }
};

TEST_F(NodeLosses, OfANodeDuringPreparationLeaveTheJobToTheOthers) {
  const Folder other;
  Process submit = submit_with_c_frozen(other);
  ASSERT_TRUE(wait_until([&] { return contains(log(0), ": submitted by "); }));
  processes_[2]->signal(SIGKILL);
  const auto killed_at = Clock::now();
  const ProgramResult ran = submit.wait();
  EXPECT_LT(Clock::now() - killed_at, 20s);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.err, "node c is gone: the job begins without it\n")) << ran.err;
  EXPECT_TRUE(contains(ran.out, "\"end\":\"completed\"")) << ran.out;
  EXPECT_TRUE(contains(log(0), "node c is gone before the job has begun")) << log(0);
}

TEST_F(NodeLosses, OfTheSeedNodeMakeSubmitTurnToAnotherNode) {
  const Folder other;
  Process submit = submit_with_c_frozen(other);
  ASSERT_TRUE(wait_until([&] { return contains(log(0), ": submitted by "); }));
  processes_[0]->signal(SIGKILL);
  ASSERT_TRUE(wait_until([&] { return contains(log(1), ": submitted by "); })) << submit.err();
  processes_[2]->signal(SIGCONT);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(
      ran.err, "node a at " + addresses_[0] + " no longer answers: the job is submitted to b\n"))
      << ran.err;
  EXPECT_TRUE(contains(ran.out, "\"end\":\"completed\"")) << ran.out;
}

TEST_F(NodeLosses, OfAllNodesMakeSubmitFail) {
  const Folder other;
  Process submit = submit_with_c_frozen(other);
  ASSERT_TRUE(wait_until([&] { return contains(log(0), ": submitted by "); }));
  for (auto& process : processes_) process->signal(SIGKILL);
  const auto killed_at = Clock::now();
  const ProgramResult ran = submit.wait();
  EXPECT_LT(Clock::now() - killed_at, 20s);
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err, "no longer answers, nor does any other node")) << ran.err;
}

TEST_F(NodeLosses, DoNotKeepCtrlCFromDroppingAJobThatIsBeingPrepared) {
  const Folder other;
  Process submit = submit_with_c_frozen(other);
  ASSERT_TRUE(wait_until([&] { return contains(log(0), ": submitted by "); }));
  submit.signal(SIGINT);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_TRUE(contains(ran.err, "the job was dropped before it had begun")) << ran.err;
}

TEST_F(NodeLosses, OfTheMajorityEndTheJobAfterWaitForNodes) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 endless_job("--wait-for-nodes 5s --copies 3 --save m --eval-every 0")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  processes_[1]->signal(SIGKILL);
  processes_[2]->signal(SIGKILL);
  const auto killed_at = Clock::now();
  ASSERT_TRUE(wait_until([&] { return contains(submit.err(), "waits: no majority"); }));
  EXPECT_LT(Clock::now() - killed_at, 15s);
  EXPECT_TRUE(contains(submit.err(), "waits for b, c\n")) << submit.err();
  EXPECT_TRUE(wait_until([&] {
    return contains(run(work_, program(), words("status" + to(0))).out, "  waits: no majority");
  }));
  const ProgramResult ran = submit.wait();
  EXPECT_LT(Clock::now() - killed_at, 40s);
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err, "given up after 5 s (--wait-for-nodes): no majority: ")) << ran.err;
  EXPECT_TRUE(contains(ran.err,
                       "stays on its nodes, but its model cannot be read from them: no checkpoint "
                       "of it was written, so nothing of it is saved; `starling stop --drop "))
      << ran.err;
  EXPECT_TRUE(contains(log(0), "given up after 5 s (--wait-for-nodes): no majority: ")) << log(0);
}

TEST_F(NodeLosses, OfTheMajorityLeaveTheCheckpointToResumeFrom) {
  const Folder other;
  Process submit{
      other, STARLING_PROGRAM,
      endless_job("--wait-for-nodes 5s --copies 3 --checkpoint c --checkpoint-every 20")};
  ASSERT_TRUE(wait_until([&] { return other.has("c"); })) << submit.err();
  processes_[1]->signal(SIGKILL);
  processes_[2]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err,
                       "cannot be read from them: `starling submit --resume c` goes on "
                       "from its checkpoint; `starling stop --drop "))
      << ran.err;
}

TEST_F(NodeLosses, OfTheMajorityForLessThanWaitForNodesDoNotEndTheJob) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(0, "--steps 800 --wait-for-nodes 60s --copies 3 --json")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  for (const std::size_t node : {1, 2}) processes_[node]->signal(SIGSTOP);
  ASSERT_TRUE(wait_until([&] { return contains(submit.err(), "waits: no majority"); }));
  for (const std::size_t node : {1, 2}) processes_[node]->signal(SIGCONT);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.err, "goes on\n")) << ran.err;
  EXPECT_TRUE(contains(ran.out, "\"end\":\"completed\"")) << ran.out;
}

class Names : public NodeLosses {
 protected:
  /// Starts a second node called a, which joins `seed`.
  ProgramResult start_second_a(const Folder& folder, std::size_t seed) {
    return Process{
        folder, program(),
        words("node --listen 127.0.0.1:*" + own_flags("a") + " --join " +
              this->seed(std::string(1, static_cast<char>('a' + seed)), addresses_.at(seed)))}
        .wait();
  }
  void expect_refusals() {
    for (const std::size_t seed : {0, 1}) {
      const Folder folder;
      const ProgramResult ran = start_second_a(folder, seed);
      EXPECT_EQ(ran.code, 1) << seed;
      EXPECT_TRUE(contains(
          ran.err, "node a is refused: a node called a is there already, at " + addresses_[0]))
          << ran.err;
      EXPECT_TRUE(wait_until([&] {
        return contains(log(seed),
                        " is refused: a node of that name is there already, at " + addresses_[0]);
      })) << log(seed);
    }
    EXPECT_TRUE(processes_[0]->is_running());
    EXPECT_TRUE(contains(status(), "a  " + addresses_[0] + "  alive")) << status();
  }
};

TEST_F(Names, OfLiveNodesAreRefused) { expect_refusals(); }

TEST_F(Names, OfDeadNodesAreFree) {
  processes_[0]->signal(SIGKILL);
  const Folder folder_of_next;
  Process next{folder_of_next, program(),
               words("node --listen 127.0.0.1:* --name a --join " + addresses_[1])};
  const std::string address = address_of(next, "a");
  EXPECT_TRUE(wait_until([&] { return contains(status(), "a  " + address + "  alive"); }))
      << status() << next.err();
  next.signal(SIGKILL);
}

TEST_F(Names, OfDeadNodesAreFreeAtOnceAtTheSameAddress) {
  processes_[0]->signal(SIGKILL);
  (void)processes_[0]->wait();
  const Folder folder_of_next;
  Process next{
      folder_of_next, program(),
      words("node --name a --listen " + addresses_[0].substr(6) + " --join " + addresses_[1])};
  EXPECT_TRUE(wait_until([&] { return contains(next.err(), "joined\n"); })) << next.err();
  EXPECT_TRUE(contains(status(), "a  " + addresses_[0] + "  alive")) << status();
  next.signal(SIGKILL);
}

TEST_F(Nodes, RefuseJobsBeyondTheirLimits) {
  const Folder folder;
  Process limited{folder, program(),
                  words("node --listen 127.0.0.1:* --name d --jobs 2 --jobs-per-client 1")};
  const std::string to = " --to " + address_of(limited, "d");
  const std::string job = "submit" + to +
                          " --data digits:n=200 --model softmax --workers 1 --steps 100000 "
                          "--delay const:5ms --detach";
  const ProgramResult first = starling(work_, job);
  EXPECT_EQ(first.code, 0) << first.err;
  const ProgramResult second = starling(work_, job);
  EXPECT_EQ(second.code, 1);
  const std::string number = first.out.substr(4, first.out.find(' ', 4) - 4);
  EXPECT_TRUE(contains(second.err,
                       "node d holds 1 job of 127.0.0.1, and takes no more of one client "
                       "(--jobs-per-client): " +
                           number))
      << second.err;
  EXPECT_EQ(starling(work_, "stop --drop" + to).code, 0);
  EXPECT_EQ(starling(work_, job).code, 0);
  limited.signal(SIGKILL);
}

/// The new process answers, but no node of the job does.
TEST_F(NodeLosses, OfAllNodesEndAJobAlsoIfOneIsStartedAnew) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, endless_job("--quiet --wait-for-nodes 5s")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  for (auto& process : processes_) process->signal(SIGKILL);
  for (auto& process : processes_) (void)process->wait();
  processes_[0] = std::make_unique<Process>(folders_[0], STARLING_PROGRAM,
                                            words("node --name a --listen " + addresses_[0]));
  EXPECT_TRUE(wait_until([&] { return !submit.is_running(); }));
  submit.signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(contains(ran.err, "no node of the job has answered for 5 s")) << ran.err;
}

}  // namespace
}  // namespace starling::program
