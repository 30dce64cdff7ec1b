/// `starling node`, `submit` and `status` as people run them: processes on this machine.
#include <array>
#include <functional>
#include <memory>

#include "tests/app/program.hpp"

namespace starling::app {
namespace {

/// Nodes that have found each other.
class Nodes : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"}) {
      std::string line = std::string{"node --listen 127.0.0.1:* --name "} + name;
      if (!addresses_.empty()) line += " --join " + addresses_.front();
      processes_.emplace_back(
          std::make_unique<Process>(folders_[processes_.size()], STARLING_PROGRAM, words(line)));
      addresses_.push_back(address_of(*processes_.back(), name));
      ASSERT_FALSE(addresses_.back().empty());
    }
    ASSERT_TRUE(wait_until([&] { return status().find("c  tcp") != std::string::npos; }));
  }

  void TearDown() override {
    for (auto& process : processes_)
      if (process) process->signal(SIGKILL);
  }

  static bool wait_until(const std::function<bool()>& holds) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (!holds()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    return true;
  }

  /// What it says where it listens.
  static std::string address_of(const Process& process, const std::string& name) {
    const std::string start = "node " + name + " at ";
    std::string address;
    (void)wait_until([&] {
      const std::string said = process.err();
      const auto from = said.find(start);
      const auto end = said.find('\n', from);
      if (from == std::string::npos || end == std::string::npos) return false;
      address = said.substr(from + start.size(), end - from - start.size());
      return true;
    });
    return address;
  }

  std::string status() { return starling(work_, "status --to " + addresses_.at(1)).out; }

  Folder work_;
  std::array<Folder, 3> folders_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::string> addresses_;
};

TEST_F(Nodes, TrainWhatIsSubmittedInEveryMode) {
  for (const char* how : {"--mode peer --barrier pssp:s=4,beta=2", "--mode hybrid --barrier asp",
                          "--mode central --barrier bsp"}) {
    const Ran ran = starling(work_, "submit --to " + addresses_[1] +
                                        " --data digits:n=1000 --model softmax --workers 4 "
                                        "--epochs 3 --quiet --json --save m.safetensors " +
                                        how);
    EXPECT_EQ(ran.code, 0) << how << "\n" << ran.err;
    EXPECT_NE(ran.out.find("\"updates\":"), std::string::npos) << ran.out;
    EXPECT_EQ(starling(work_, "evaluate m.safetensors").code, 0);
  }
}

TEST_F(Nodes, GoOnWhenTheFirstIsKilledAndLeaveInOrder) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 words("submit --to " + addresses_[2] +
                       " --data digits:n=1000 --model softmax --workers 3 --steps 300 "
                       "--delay exp:10ms --json")};
  ASSERT_TRUE(wait_until([&] { return status().find("step 3") != std::string::npos; }));
  processes_[0]->signal(SIGKILL);
  const Ran ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\"spread\":{\"min\":300,\"median\":300,\"max\":300"), std::string::npos)
      << ran.out;
  EXPECT_NE(status().find("a  " + addresses_[0] + "  dead"), std::string::npos) << status();
  processes_[2]->signal(SIGTERM);
  EXPECT_EQ(processes_[2]->wait().code, 0);
  processes_.pop_back();
  EXPECT_NE(status().find("left"), std::string::npos) << status();
}

TEST_F(Nodes, RefuseAJobThatCannotBe) {
  const Ran ran = starling(
      work_, "submit --to " + addresses_[1] + " --data digits:n=300 --mode peer --barrier bsp");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--barrier: barrier bsp needs to see every worker's step"),
            std::string::npos)
      << ran.err;
}

TEST(Submit, SaysThatNobodyAnswers) {
  const Folder folder;
  const Ran ran = starling(folder, "status --to 127.0.0.1:1");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("no answer from tcp://127.0.0.1:1"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace starling::app
