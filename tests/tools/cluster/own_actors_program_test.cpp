/// A user's own actors in jobs on three nodes.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

/// Nodes that run own_program.cpp, whose actors `questioner` and `stopper` are those of
/// own_actors.hpp.
class OwnActors : public Nodes {
 protected:
  const char* program() override { return STARLING_OWN_PROGRAM; }

  /// True once the actor on this node has printed a line that matches `pattern`, behind its first
  /// `from` characters.
  bool has_printed(std::size_t node, const std::string& pattern, std::size_t from = 0) {
    return std::regex_search(processes_.at(node)->out().substr(from), std::regex{pattern});
  }
};

TEST_F(OwnActors, AskTheMembersOfAllNodesAndStopTheJob) {
  for (const std::string flags : {"--mode hybrid --barrier asp --shards 1", "--mode peer",
                                  "--mode central --barrier asp --shards 1"}) {
    std::array<std::size_t, 3> before{};  // what the actors of the earlier jobs have printed
    for (std::size_t node = 0; node < 3; ++node) before[node] = processes_[node]->out().size();
    const ProgramResult ran =
        run(work_, program(),
            job_of_three(1, flags + " --actors stopper --seconds 60 --json --quiet --save m"));
    ASSERT_EQ(ran.code, 0) << flags << ": " << ran.err;
    EXPECT_EQ(nlohmann::json::parse(ran.out)["end"], "stopped") << ran.out;
    EXPECT_TRUE(work_.has("m"));
    for (std::size_t node = 0; node < 3; ++node) {
      EXPECT_TRUE(has_printed(node, "3 of 3 workers, steps .*, range of [1-9]", before[node]))
          << flags << "\n"
          << processes_[node]->out();
      // Only in central mode does a member know the largest lag.
      EXPECT_EQ(has_printed(node, "lag [0-9]", before[node]), flags.starts_with("--mode central"))
          << processes_[node]->out();
    }
  }
}

/// Node c dies: questions to its worker are refused, and those about its range go to the next
/// owner.
TEST_F(OwnActors, GoOnWithoutADeadNode) {
  Process submit{work_, program(),
                 job_of_three(0, "--mode peer --actors questioner --steps 400 --quiet --save m")};
  ASSERT_TRUE(wait_until([&] { return has_printed(0, "3 of 3 workers"); })) << submit.err();
  processes_[2]->signal(SIGKILL);
  EXPECT_TRUE(wait_until([&] { return has_printed(0, "2 of 3 workers.* range of [1-9]"); }))
      << processes_[0]->out();
  EXPECT_EQ(submit.wait().code, 0) << submit.err();
}

/// Only the client has the actors.
TEST_F(Nodes, RefuseAJobWhoseActorsTheyDoNotHave) {
  const ProgramResult unknown =
      run(work_, STARLING_OWN_PROGRAM, job_of_three(0, "--actors nobody --epochs 1 --quiet"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--actors: 'nobody': this program has no own actors of this name; "
                             "valid: questioner, stopper"),
            std::string::npos)
      << unknown.err;
  const ProgramResult foreign =
      run(work_, STARLING_OWN_PROGRAM, job_of_three(0, "--actors questioner --epochs 1 --quiet"));
  EXPECT_NE(foreign.code, 0);
  EXPECT_NE(
      foreign.err.find("'questioner': this program has no own actors of this name; valid: none"),
      std::string::npos)
      << foreign.err;
}

}  // namespace
}  // namespace starling::program
