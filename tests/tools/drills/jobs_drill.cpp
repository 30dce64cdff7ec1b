/// Two hundred jobs in a row on the same three nodes. A node keeps a record of each job for a day,
/// and nothing else: no thread, no descriptor, no model.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

/// The resources of a process.
struct Resources {
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  /// Resident memory in MiB.
  std::size_t memory = 0;
};

Resources resources_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  Resources resources;
  std::ifstream lines{folder + "/status"};
  for (std::string line; std::getline(lines, line);) {
    const auto value = [&](const std::string& name, std::size_t& to, std::size_t unit) {
      if (line.starts_with(name + ":")) to = std::stoul(line.substr(name.size() + 1)) / unit;
    };
    value("Threads", resources.threads, 1);
    value("VmRSS", resources.memory, 1024);
  }
  const std::filesystem::directory_iterator descriptors{folder + "/fd"};
  resources.descriptors = static_cast<std::size_t>(std::distance(begin(descriptors), {}));
  return resources;
}

class JobsDrill : public Nodes {
 protected:
  /// Runs a job at the nodes in turn, each with another exchange than the one before.
  void run_job(std::size_t i) {
    constexpr std::array<const char*, 5> exchanges{
        "--mode peer --barrier pssp:s=4,beta=1", "--mode central --shards 1 --barrier bsp",
        "--mode hybrid --barrier asp", "--mode peer --exchange allreduce",
        "--mode peer --exchange gossip --barrier asp"};
    const std::string line = "submit" + to(i % 3) +
                             "--data linear:d=100,n=2000 --model linear --workers 3 --steps 30 "
                             "--json --quiet " +
                             exchanges[i % exchanges.size()];
    const ProgramResult ran = run(work_, program(), words(line));
    ASSERT_EQ(ran.code, 0) << "job " << i << ": " << ran.err;
    ASSERT_EQ(nlohmann::json::parse(ran.out)["updates"], 90) << "job " << i << ": " << ran.out;
  }

  /// Returns the most that any node has of each resource.
  Resources most_resources() {
    Resources most;
    for (const auto& process : processes_) {
      const Resources one = resources_of(process->id());
      most.threads = std::max(most.threads, one.threads);
      most.descriptors = std::max(most.descriptors, one.descriptors);
      most.memory = std::max(most.memory, one.memory);
    }
    return most;
  }
};

TEST_F(JobsDrill, TwoHundredInARowLeaveNothingBehind) {
  constexpr std::size_t first = 20;
  constexpr std::size_t all = 200;
  Resources before;
  for (std::size_t i = 0; i < all; ++i) {
    ASSERT_NO_FATAL_FAILURE(run_job(i));
    if (i + 1 == first) before = most_resources();
  }
  Resources after;
  const bool is_even = wait_until([&] {
    after = most_resources();
    return after.threads <= before.threads && after.descriptors <= before.descriptors;
  });
  std::printf(
      "             after %zu and %zu jobs: %zu and %zu threads, %zu and %zu descriptors, "
      "%zu and %zu MiB\n",
      first, all, before.threads, after.threads, before.descriptors, after.descriptors,
      before.memory, after.memory);
  EXPECT_TRUE(is_even);
  EXPECT_LE(after.memory, before.memory + 32) << "180 more jobs of 2,000 x 100 floats (0.8 MB)";
  const std::string nodes = status();
  EXPECT_EQ(nodes.find("  dead"), std::string::npos) << nodes;
}

}  // namespace
}  // namespace starling::program
