/// SIGTERM ends a node within 3 s, at random moments of preparing, training, checkpointing, and a
/// flood of submitted jobs. The nodes are processes on this machine.
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto end_timeout = 3s;

/// The jobs that the nodes have when SIGTERM comes.
struct Load {
  const char* name;
  /// The flags of the job, which is submitted to the node that stays.
  const char* job_flags;
  /// The number of further such jobs, submitted at once to both nodes in turn.
  int further_jobs;
  /// A text that a node must have logged before SIGTERM, in one round at least.
  const char* logged;
};

/// Two nodes, of which the test stops one.
class Stop : public testing::TestWithParam<Load> {
 protected:
  struct Node {
    std::unique_ptr<Folder> folder = std::make_unique<Folder>();
    std::unique_ptr<Process> process;
    std::string address;
  };

  static Node start(const std::string& name, const std::string& seed) {
    Node node;
    node.process = std::make_unique<Process>(*node.folder, STARLING_PROGRAM,
                                             words("node --listen 127.0.0.1:* --name " + name +
                                                   (seed.empty() ? "" : " --join " + seed)));
    node.address = address_of(*node.process, name);
    return node;
  }

  /// Returns how often a node is stopped: STARLING_DRILL_ROUNDS, or 13.
  static int rounds() {
    const char* chosen = std::getenv("STARLING_DRILL_ROUNDS");
    return chosen == nullptr ? 13 : std::atoi(chosen);
  }
};

TEST_P(Stop, EndsANodeWithinThreeSeconds) {
  std::mt19937 random{20'251'122};
  std::chrono::milliseconds longest{};
  int reached = 0;
  for (int round = 0; round < rounds(); ++round) {
    Node staying = start("stays", "");
    Node ending = start("goes" + std::to_string(round), staying.address);
    ASSERT_FALSE(ending.address.empty());
    std::vector<std::unique_ptr<Folder>> folders;
    std::vector<std::unique_ptr<Process>> submits;
    for (int i = 0; i <= GetParam().further_jobs; ++i) {
      folders.push_back(std::make_unique<Folder>());
      const std::string& to = i % 2 == 0 ? staying.address : ending.address;
      submits.push_back(std::make_unique<Process>(
          *folders.back(), STARLING_PROGRAM, words("submit --to " + to + GetParam().job_flags)));
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds{std::uniform_int_distribution<int>{0, 2500}(random)});
    const std::string logs = staying.process->err() + ending.process->err();
    reached += logs.find(GetParam().logged) != std::string::npos ? 1 : 0;
    const auto asked_at = Clock::now();
    ending.process->signal(SIGTERM);
    const bool has_ended = wait_until([&] { return !ending.process->is_running(); }, 20s);
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - asked_at);
    longest = std::max(longest, took);
    EXPECT_LE(took, end_timeout) << GetParam().name << ", round " << round << "\n"
                                 << ending.process->err();
    if (!has_ended) ending.process->signal(SIGKILL);
    const ProgramResult ran = ending.process->wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
    for (auto& submit : submits) submit->signal(SIGKILL);
    staying.process->signal(SIGKILL);
  }
  std::printf("             %s: the longest of %d stops took %ld ms, %d were under load\n",
              GetParam().name, rounds(), static_cast<long>(longest.count()), reached);
  EXPECT_GT(reached, 0) << "the nodes had no such job when SIGTERM came";
}

INSTANTIATE_TEST_SUITE_P(
    At, Stop,
    testing::Values(
        Load{"Preparing", " --data digits:n=20000 --model softmax --workers 4 --seconds 60", 0,
             ": submitted by "},
        Load{"Training", " --data digits:n=500 --model mlp:784-128-10 --workers 4 --seconds 60", 0,
             ": begins\n"},
        Load{"Checkpointing",
             " --data digits:n=500 --model mlp:784-128-10 --workers 4 --seconds 60 "
             "--checkpoint c.safetensors --checkpoint-every 5",
             0, ": begins\n"},
        Load{"Flooded",
             " --data digits:n=200 --model softmax --workers 4 --seconds 60 --detach --quiet", 9,
             ": submitted by "}),
    [](const auto& tested) { return std::string{tested.param.name}; });

}  // namespace
}  // namespace starling::program
