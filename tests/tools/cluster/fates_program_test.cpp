/// Nodes, as processes on this machine, that leave, die and come back: what `status`, `jobs`,
/// `attach` and `submit` then say of the nodes, of the workers and of their updates.
#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/tools/cluster/nodes.hpp"
#include "tests/tools/output.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

class Fates : public Nodes {
 protected:
  /// Starts node number `node` anew at its address; it joins node `seed`.
  void restart(std::size_t node, std::size_t seed) {
    const std::string name(1, static_cast<char>('a' + node));
    processes_[node] = std::make_unique<Process>(
        folders_[node], program(),
        words("node" + own_flags(name) + " --listen " + addresses_[node].substr(6) + " --join " +
              this->seed(std::string(1, static_cast<char>('a' + seed)), addresses_[seed])));
  }
  void kill(std::size_t node) {
    processes_[node]->signal(SIGKILL);
    (void)processes_[node]->wait();
  }
  /// Waits until `status` shows this state of node number `node`.
  [[nodiscard]] bool is_shown(std::size_t node, const std::string& state) {
    const std::string line =
        std::string(1, static_cast<char>('a' + node)) + "  " + addresses_[node] + "  " + state;
    return wait_until([&] { return contains(status(), line); });
  }
  /// Returns what a command prints with `--json` about the only job.
  Json job_of(const std::string& command, std::size_t node = 1) {
    const Json json =
        Json::parse(starling(work_, command + " --json" + to(node)).out, nullptr, false);
    if (json.is_discarded() || !json.contains("jobs") || json["jobs"].empty())
      return Json::object();
    return json["jobs"][0];
  }
  [[nodiscard]] bool has_members(std::size_t count) {
    const Json job = job_of("status");
    return job.contains("members") && job["members"].size() == count;
  }
  void detach(const std::string& more_flags) {
    const ProgramResult ran =
        run(work_, program(), job_of_three(0, "--detach --name j " + more_flags));
    ASSERT_EQ(ran.code, 0) << ran.err;
    ASSERT_TRUE(wait_until([&] { return is_training(); }));
  }
};

TEST_F(Fates, OfTheLastProcessOfANodeAreShown) {
  processes_[2]->signal(SIGTERM);
  (void)processes_[2]->wait();
  EXPECT_TRUE(is_shown(2, "left")) << status();
  restart(2, 1);
  EXPECT_TRUE(is_shown(2, "alive")) << status();
  kill(2);
  EXPECT_TRUE(is_shown(2, "dead")) << status();
  EXPECT_FALSE(contains(status(), "  left")) << status();
  restart(2, 1);
  EXPECT_TRUE(is_shown(2, "alive")) << status();
  processes_[2]->signal(SIGTERM);
  (void)processes_[2]->wait();
  EXPECT_TRUE(is_shown(2, "left")) << status();
  EXPECT_FALSE(contains(status(), "  dead")) << status();
}

/// Every count has all updates of the workers that are there, and those of the killed one.
TEST_F(Fates, DoNotChangeTheCountOfUpdates) {
  detach("--steps 400");
  ASSERT_TRUE(wait_until([&] { return job_of("status").value("updates", 0) >= 150; }));
  kill(2);
  const int before = job_of("status").value("updates", 0);
  int last = 0;
  ASSERT_TRUE(wait_until([&] {
    const Json job = job_of("status");
    EXPECT_GE(job.value("updates", 0), last) << "the count never falls";
    last = std::max(last, job.value("updates", 0));
    return job.value("state", "") == "done";
  })) << status();
  EXPECT_GT(last, 800 + 30) << "two workers made 400 each, and node c's some 50";
  EXPECT_GE(last, before);
  EXPECT_EQ(job_of("jobs")["updates"], last);
  const ProgramResult attached = starling(work_, "attach --json" + to(1));
  ASSERT_EQ(attached.code, 0) << attached.err;
  const Json json = Json::parse(attached.out);
  EXPECT_EQ(json["updates"], last) << attached.out;
  EXPECT_EQ(json["workers_finished"], 2) << attached.out;
  EXPECT_EQ(starling(work_, "stop --drop" + to(1)).code, 0);
  EXPECT_EQ(job_of("jobs")["updates"], last) << "the nodes' own count";
}

TEST_F(Fates, OfWorkersAreAnnouncedAndSummedUp) {
  const Folder other;
  Process submit{other, program(), job_of_three(0, "--steps 100000 --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  processes_[2]->signal(SIGTERM);
  (void)processes_[2]->wait();
  EXPECT_TRUE(wait_until([&] {
    return std::regex_search(submit.err(),
                             std::regex{"node c (has left|leaves the job): 2 of 3 workers go on "
                                        "without it\n"});
  })) << submit.err();
  restart(2, 1);
  EXPECT_TRUE(wait_until([&] {
    return contains(submit.err(), "node c has joined with 1 worker: the job has 3 workers now\n");
  })) << submit.err();
  kill(2);
  EXPECT_TRUE(wait_until([&] {
    return contains(submit.err(), "node c is gone: 2 of 3 workers go on without it\n");
  })) << submit.err();
  submit.signal(SIGINT);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_TRUE(contains(ran.out, "  workers     2 finished, 1 left, 1 died\n")) << ran.out;
}

/// Progress lines come from the nodes that answer, also while one that has died is not declared
/// dead yet, and while an evaluation would need its ranges.
TEST_F(Fates, DoNotStopTheProgressLines) {
  const Folder other;
  Process submit{other, program(), job_of_three(0, "--steps 100000 --metrics x --eval-every 10")};
  const auto count_lines = [&] { return lines(other.read("x")).size(); };
  ASSERT_TRUE(wait_until([&] { return is_training() && count_lines() > 10; }));
  kill(2);
  auto line_at = Clock::now();
  Clock::duration longest{};
  std::size_t seen = count_lines();
  for (const auto end = Clock::now() + 6s; Clock::now() < end; std::this_thread::sleep_for(20ms)) {
    const std::size_t now = count_lines();
    if (now == seen) continue;
    seen = now;
    longest = std::max(longest, Clock::now() - std::exchange(line_at, Clock::now()));
  }
  longest = std::max(longest, Clock::now() - line_at);
  // An evaluation that waits for the dead node takes 6 s, and a poll 2 s.
  EXPECT_LT(longest, 5s) << other.read("x");
  EXPECT_TRUE(contains(submit.err(), "node c is gone")) << submit.err();
  submit.signal(SIGINT);
  EXPECT_EQ(submit.wait().code, 130);
}

/// Nodes b and c are the majority of the council. When they are started anew, their votes are lost.
TEST_F(Fates, OfAMajorityThatWasStartedAnewEndTheJobWithAnErrorThatSaysWhatToDo) {
  const Folder other;
  Process submit{other, program(), job_of_three(0, "--steps 1000000 --wait-for-nodes 100s")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  kill(1);
  kill(2);
  ASSERT_TRUE(wait_until([&] { return contains(submit.err(), "waits: no majority"); }))
      << submit.err();
  restart(1, 0);
  restart(2, 0);
  const auto restarted_at = Clock::now();
  const ProgramResult ran = submit.wait();
  EXPECT_LT(Clock::now() - restarted_at, 60s);
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(std::regex_search(
      ran.err,
      std::regex{"given up: nodes? .*(was|were) started anew and (has|have) lost .* of the "
                 "job, so no majority of the members that decide is left; valid: a new "
                 "job, or one that resumes from a checkpoint"}))
      << ran.err;
  for (const std::size_t node : {0, 1})
    EXPECT_TRUE(
        wait_until([&] { return !contains(starling(work_, "status" + to(node)).out, "joining"); }));
}

/// Node c alone has a range, and would be waited for.
TEST_F(Fates, OfTheOnlyOwnerThatWasStartedAnewEndTheJob) {
  const Folder other;
  Process submit{other, program(),
                 job_of_three(0, "--steps 1000000 --copies 1 --wait-for-nodes 100s")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  kill(2);
  restart(2, 0);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.err,
                       "node c was started anew and has lost its part of the job, so ranges of the "
                       "model are lost; valid: a new job, or one that resumes from a checkpoint"))
      << ran.err;
}

/// Node c cannot hand over its ranges, because b, which must take some of them, is frozen.
TEST_F(Fates, OfANodeThatWasAskedToLeaveAreTold) {
  detach("--steps 100000");
  processes_[1]->signal(SIGSTOP);
  Process leave{work_, STARLING_PROGRAM, words("leave" + to(2))};
  ASSERT_TRUE(wait_until([&] { return contains(processes_[2]->err(), "asked to leave by "); }))
      << leave.err();
  kill(2);
  processes_[1]->signal(SIGCONT);
  const ProgramResult left = leave.wait();
  EXPECT_EQ(left.code, 1) << left.out;
  EXPECT_EQ(left.err,
            "starling: c did not leave in order: the other nodes declared it dead, and go on "
            "without it\n");
}

/// The values become infinite after some updates.
TEST_F(Fates, OfFailedMembersOfADetachedJobAreTold) {
  const ProgramResult ran =
      starling(work_,
               "submit --detach --name j --data linear:d=5,n=200 --model linear --workers 3 "
               "--optimizer sgd:lr=1000000 --steps 1000 --delay const:5ms" +
                   to(0));
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::string why;
  ASSERT_TRUE(wait_until([&] {
    const Json job = job_of("status");
    why = job.value("why", "");
    return job.value("state", "") == "failed";
  })) << status();
  EXPECT_TRUE(contains(why, "worker ")) << why;
  EXPECT_EQ(job_of("jobs")["state"], "failed");
  EXPECT_EQ(job_of("jobs")["why"], why);
  const ProgramResult attached = starling(work_, "attach" + to(1));
  EXPECT_EQ(attached.code, 1);
  EXPECT_TRUE(contains(attached.err, "worker ")) << attached.err;
  const ProgramResult stopped = starling(work_, "stop" + to(2));
  EXPECT_TRUE(contains(stopped.out, "job j: has failed (worker ")) << stopped.out;
  EXPECT_EQ(starling(work_, "stop --drop" + to(2)).code, 0);
  EXPECT_EQ(job_of("jobs")["state"], "failed");
  EXPECT_TRUE(contains(job_of("jobs").value("why", ""), "worker ")) << job_of("jobs");
}

}  // namespace
}  // namespace starling::program
