/// examples/06_own_actor.cpp on three nodes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

class OwnActorExample : public Nodes {
 protected:
  const char* program() override { return STARLING_OWN_ACTOR_EXAMPLE; }
};

TEST_F(OwnActorExample, ReadsTheStepsOfTheWorkersOnAllNodesAndStopsTheJob) {
  const ProgramResult ran =
      run(work_, program(),
          words("submit" + to(1) +
                "--workers 3 --actors watcher --data linear:d=100,n=5000 --delay exp:10ms "
                "--seconds 60 --json --quiet"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["end"], "stopped") << ran.out;
  std::size_t stops = 0;
  for (const auto& process : processes_) {
    const std::string printed = process->out();
    const auto has = [&](const char* pattern) {
      return std::regex_search(printed, std::regex{pattern});
    };
    EXPECT_TRUE(has("steps [1-9][0-9]* [1-9][0-9]* [1-9][0-9]*\n")) << printed;
    stops += has("stops the job at a median step of 2[0-9][0-9]\n") ? 1 : 0;
  }
  EXPECT_GE(stops, 1U);
}

}  // namespace
}  // namespace starling::program
