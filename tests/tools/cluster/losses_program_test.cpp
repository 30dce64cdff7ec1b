/// Nodes that die while a job is prepared, that come under another's name, and that leave a job
/// without a majority: processes on this machine.
#include <algorithm>
#include <chrono>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Losses : public Nodes {
 protected:
  std::string log(std::size_t node) { return processes_.at(node)->err(); }
  static bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  /// A node that has to be there yet for the job's start, and cannot be.
  Process submit_where_c_stands(const Folder& folder, const std::string& more = {}) {
    processes_[2]->signal(SIGSTOP);
    return {folder, STARLING_PROGRAM, job_of_three(0, "--steps 20 --quiet --json " + more)};
  }
  std::vector<std::string> endless_job(const std::string& more) {
    return job_of_three(0, "--steps 1000000 " + more);
  }
};

TEST_F(Losses, OfANodeWhileAJobIsPreparedLeaveItToTheOthers) {
  const Folder other;
  Process submit = submit_where_c_stands(other);
  ASSERT_TRUE(wait_until([&] { return holds(log(0), ": submitted by "); }));
  processes_[2]->signal(SIGKILL);
  const auto killed = Clock::now();
  const Ran ran = submit.wait();
  EXPECT_LT(Clock::now() - killed, 20s);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(holds(ran.err, "node c is gone: the job begins without it\n")) << ran.err;
  EXPECT_TRUE(holds(ran.out, "\"end\":\"completed\"")) << ran.out;
  EXPECT_TRUE(holds(log(0), "node c is gone before the job has begun")) << log(0);
}

TEST_F(Losses, OfTheNodeThatWasAskedLeaveTheJobToAnother) {
  const Folder other;
  Process submit = submit_where_c_stands(other);
  ASSERT_TRUE(wait_until([&] { return holds(log(0), ": submitted by "); }));
  processes_[0]->signal(SIGKILL);
  ASSERT_TRUE(wait_until([&] { return holds(log(1), ": submitted by "); })) << submit.err();
  processes_[2]->signal(SIGCONT);
  const Ran ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(holds(ran.err,
                    "node a at " + addresses_[0] + " answers no more: the job is submitted to b\n"))
      << ran.err;
  EXPECT_TRUE(holds(ran.out, "\"end\":\"completed\"")) << ran.out;
}

TEST_F(Losses, OfAllNodesEndSubmit) {
  const Folder other;
  Process submit = submit_where_c_stands(other);
  ASSERT_TRUE(wait_until([&] { return holds(log(0), ": submitted by "); }));
  for (auto& process : processes_) process->signal(SIGKILL);
  const auto killed = Clock::now();
  const Ran ran = submit.wait();
  EXPECT_LT(Clock::now() - killed, 20s);
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(holds(ran.err, "answers no more, nor does any other node")) << ran.err;
}

TEST_F(Losses, CtrlCDropsAJobThatIsPrepared) {
  const Folder other;
  Process submit = submit_where_c_stands(other);
  ASSERT_TRUE(wait_until([&] { return holds(log(0), ": submitted by "); }));
  submit.signal(SIGINT);
  const Ran ran = submit.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_TRUE(holds(ran.err, "the job is dropped before it has begun")) << ran.err;
}

TEST_F(Losses, OfTheMajorityEndAJobThatHasNoMorePatience) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, endless_job("--wait-for-nodes 5s --copies 3")};
  ASSERT_TRUE(wait_until([&] { return is_under_way(); }));
  processes_[1]->signal(SIGKILL);
  processes_[2]->signal(SIGKILL);
  const auto killed = Clock::now();
  ASSERT_TRUE(wait_until([&] { return holds(submit.err(), "waits: no majority"); }));
  EXPECT_LT(Clock::now() - killed, 15s);
  EXPECT_TRUE(holds(submit.err(), "waits for b, c\n")) << submit.err();
  EXPECT_TRUE(wait_until([&] {
    return holds(run(work_, program(), words("status" + to(0))).out, "  waits: no majority");
  }));
  const Ran ran = submit.wait();
  EXPECT_LT(Clock::now() - killed, 40s);
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(holds(ran.err, "given up after 5 s (--wait-for-nodes): no majority: ")) << ran.err;
  EXPECT_TRUE(holds(log(0), "given up after 5 s (--wait-for-nodes): no majority: ")) << log(0);
}

TEST_F(Losses, OfAMajorityForLessThanThePatienceAreWaitedFor) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(0, "--steps 800 --wait-for-nodes 60s --copies 3 --json")};
  ASSERT_TRUE(wait_until([&] { return is_under_way(); }));
  for (const std::size_t node : {1, 2}) processes_[node]->signal(SIGSTOP);
  ASSERT_TRUE(wait_until([&] { return holds(submit.err(), "waits: no majority"); }));
  for (const std::size_t node : {1, 2}) processes_[node]->signal(SIGCONT);
  const Ran ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(holds(ran.err, "goes on\n")) << ran.err;
  EXPECT_TRUE(holds(ran.out, "\"end\":\"completed\"")) << ran.out;
}

class Names : public Losses {
 protected:
  Ran start_twin(const Folder& folder, std::size_t seed) {
    return Process{
        folder, program(),
        words("node --listen 127.0.0.1:*" + own_flags("a") + " --join " +
              this->seed(std::string(1, static_cast<char>('a' + seed)), addresses_.at(seed)))}
        .wait();
  }
  void expect_refusals() {
    for (const std::size_t seed : {0, 1}) {
      const Folder twins;
      const Ran ran = start_twin(twins, seed);
      EXPECT_EQ(ran.code, 1) << seed;
      EXPECT_TRUE(holds(ran.err,
                        "node a is refused: a node called a is there already, at " + addresses_[0]))
          << ran.err;
      EXPECT_TRUE(wait_until([&] {
        return holds(log(seed),
                     " is refused: a node of that name is there already, at " + addresses_[0]);
      })) << log(seed);
    }
    EXPECT_TRUE(processes_[0]->is_running());
    EXPECT_TRUE(holds(status(), "a  " + addresses_[0] + "  alive")) << status();
  }
};

TEST_F(Names, OfANodeThatIsThereAreRefused) { expect_refusals(); }

TEST_F(Names, OfADeadNodeAreFree) {
  processes_[0]->signal(SIGKILL);
  const Folder again;
  Process next{again, program(),
               words("node --listen 127.0.0.1:* --name a --join " + addresses_[1])};
  const std::string address = address_of(next, "a");
  EXPECT_TRUE(wait_until([&] { return holds(status(), "a  " + address + "  alive"); }))
      << status() << next.err();
  next.signal(SIGKILL);
}

TEST_F(Names, AtTheSameAddressAreFreeAtOnce) {
  processes_[0]->signal(SIGKILL);
  (void)processes_[0]->wait();
  const Folder again;
  Process next{
      again, program(),
      words("node --name a --listen " + addresses_[0].substr(6) + " --join " + addresses_[1])};
  EXPECT_TRUE(wait_until([&] { return holds(next.err(), "joined\n"); })) << next.err();
  EXPECT_TRUE(holds(status(), "a  " + addresses_[0] + "  alive")) << status();
  next.signal(SIGKILL);
}

TEST_F(Losses, MoreJobsThanANodeTakesAreRefusedByName) {
  const Folder folder;
  Process small{folder, program(),
                words("node --listen 127.0.0.1:* --name d --jobs 2 --jobs-per-client 1")};
  const std::string to = " --to " + address_of(small, "d");
  const std::string job = "submit" + to +
                          " --data digits:n=200 --model softmax --workers 1 --steps 100000 "
                          "--delay const:5ms --detach";
  const Ran first = starling(work_, job);
  EXPECT_EQ(first.code, 0) << first.err;
  const Ran second = starling(work_, job);
  EXPECT_EQ(second.code, 1);
  const std::string number = first.out.substr(4, first.out.find(' ', 4) - 4);
  EXPECT_TRUE(holds(second.err,
                    "node d holds 1 job of 127.0.0.1, and takes no more of one client "
                    "(--jobs-per-client): " +
                        number))
      << second.err;
  EXPECT_EQ(starling(work_, "stop --drop" + to).code, 0);
  EXPECT_EQ(starling(work_, job).code, 0);
  small.signal(SIGKILL);
}

}  // namespace
}  // namespace starling::program
