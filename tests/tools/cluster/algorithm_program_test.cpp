/// The program of examples/09_algorithm.cpp, whose algorithm k-means runs in one process and on
/// three nodes.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/tools/files/safetensors.hpp"
#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

constexpr const char* kmeans =
    " --model kmeans:k=10,steps=60 --data digits:n=600 --workers 3 --json --quiet ";

double distance_of(const ProgramResult& ran) {
  return nlohmann::json::parse(ran.out).value("test_distance", 0.0);
}

class AlgorithmOnNodes : public Nodes {
 protected:
  const char* program() override { return STARLING_ALGORITHM_EXAMPLE; }
};

TEST_F(AlgorithmOnNodes, GivesTheBitsOfOneProcessUnderBsp) {
  const std::string flags = std::string{kmeans} + "--mode central --barrier bsp --steps 8 --save ";
  const ProgramResult one = run(work_, program(), words("train" + flags + "one"));
  ASSERT_EQ(one.code, 0) << one.err;
  const ProgramResult many = run(work_, program(), words("submit" + to(1) + flags + "many"));
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_GT(distance_of(one), 1);
  EXPECT_EQ(distance_of(one), distance_of(many));
  const ProgramResult evaluated = run(work_, program(), words("evaluate many --json"));
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(nlohmann::json::parse(evaluated.out).value("distance", 0.0), distance_of(many));
}

TEST_F(AlgorithmOnNodes, RunsAmongPeersToo) {
  const ProgramResult ran =
      run(work_, program(), words("submit" + to(0) + kmeans + "--mode peer --steps 30"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const ProgramResult one =
      run(work_, program(),
          words("train" + std::string{kmeans} + "--mode central --barrier bsp --steps 30"));
  EXPECT_NEAR(distance_of(ran), distance_of(one), 0.1 * distance_of(one));
}

/// The workers that are left share all samples, so the last steps are those of one process.
TEST_F(AlgorithmOnNodes, GivesTheResultOfOneProcessIfANodeIsKilled) {
  const std::string flags = std::string{kmeans} + "--mode central --barrier bsp --steps 60 ";
  const ProgramResult one = run(work_, program(), words("train" + flags));
  ASSERT_EQ(one.code, 0) << one.err;
  const Folder folder;
  Process submit{folder, program(), words("submit" + to(0) + flags + "--delay exp:50ms --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  processes_[2]->signal(SIGKILL);
  const ProgramResult many = submit.wait();
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_TRUE(folder.has("m"));
  EXPECT_NEAR(distance_of(many), distance_of(one), 0.03 * distance_of(one));
}

/// The program of examples/10_pagerank.cpp.
class PageRankOnNodes : public Nodes {
 protected:
  const char* program() override { return STARLING_PAGERANK_EXAMPLE; }

  /// Expects that the file has the ranks that satisfy PageRank's equation.
  static void expect_ranks(const Folder& folder, const std::string& file) {
    const auto read = safetensors::read((folder.path() / file).string());
    ASSERT_TRUE(read) << read.error().message;
    const safetensors::Tensor* tensor = read->find("rank");
    ASSERT_NE(tensor, nullptr);
    ASSERT_EQ(tensor->size(), pages);
    std::vector<double> found(pages);
    std::memcpy(found.data(), tensor->bytes.data(), tensor->bytes.size());
    std::vector<double> ranks(pages, 1.0 / pages);
    for (int sweep = 0; sweep < 300; ++sweep) {
      std::vector<double> next(pages, 0.15 / pages);
      for (std::uint32_t i = 0; i < pages; ++i)
        for (const std::uint32_t linked : {2 * i + 1, i * i + 3})
          next[linked % pages] += 0.85 * ranks[i] / 2;
      ranks = next;
    }
    for (std::uint32_t page = 0; page < pages; ++page)
      ASSERT_NEAR(found[page], ranks[page], 1e-9) << page;
  }
  static constexpr std::uint32_t pages = 300;
};

constexpr const char* pagerank =
    " --data web:pages=300 --model pagerank:pages=300 --workers 6 --mode peer "
    "--barrier pssp:s=4,beta=2 --quiet --steps ";

TEST_F(PageRankOnNodes, GivesTheRanksOfOneProcess) {
  const ProgramResult one =
      run(work_, program(), words("train" + std::string{pagerank} + "200 --save one"));
  ASSERT_EQ(one.code, 0) << one.err;
  expect_ranks(work_, "one");
  const ProgramResult many =
      run(work_, program(), words("submit" + to(1) + pagerank + "200 --save many"));
  ASSERT_EQ(many.code, 0) << many.err;
  expect_ranks(work_, "many");
}

TEST_F(PageRankOnNodes, AlsoIfANodeIsKilled) {
  const Folder folder;
  Process submit{folder, program(),
                 words("submit" + to(0) + pagerank + "250 --delay exp:20ms --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  processes_[2]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_ranks(folder, "m");
}

TEST(Algorithm, IsSimulatedAndRefusesOptionsOfGradients) {
  const Folder folder;
  const auto ran = [&](const std::string& line) {
    return run(folder, STARLING_ALGORITHM_EXAMPLE, words(line));
  };
  const ProgramResult simulated =
      ran("sim --level protocol --workers 3 --steps 8 --mode central --barrier bsp --latency "
          "exp:1ms --data digits:n=600 --model kmeans:k=10,steps=8 --json --quiet");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_GT(nlohmann::json::parse(simulated.out)[0]["figures"]["distance"], 1);
  for (const std::string command : {"train", "sim --level protocol"})
    for (const std::string key :
         {"optimizer sgd", "l2 0.1", "clip norm:1", "batch 10", "epochs 2"}) {
      const ProgramResult refused = ran(command + kmeans + "--steps 8 --" + key);
      EXPECT_EQ(refused.code, 2) << command << ' ' << key;
      EXPECT_NE(refused.err.find(": algorithm kmeans:k=10,steps=60 computes its own updates; "
                                 "valid: no " +
                                 key.substr(0, key.find(' '))),
                std::string::npos)
          << refused.err;
    }
  EXPECT_NE(ran("train" + std::string{kmeans}).err.find("--steps: is needed for algorithm kmeans"),
            std::string::npos);
  EXPECT_NE(ran("train --model kmeans:k=0 --data digits:n=100 --steps 2").err.find("k=0"),
            std::string::npos);
  const ProgramResult too_long =
      ran("train --data digits:n=100 --model kmeans:steps=2 --steps 3 "
          "--mode central --barrier bsp --quiet");
  EXPECT_EQ(too_long.code, 1);
  EXPECT_NE(too_long.err.find("row"), std::string::npos) << too_long.err;
}

}  // namespace
}  // namespace starling::program
