/// The program of examples/09_algorithm.cpp, whose algorithm k-means runs in one process and on
/// three nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
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

/// k-means over three groups of 30 samples each. The samples of a group are less than 2 apart from
/// one another, and more than 90 from others. So the mean of any samples of a group is nearest to
/// the samples of this group: whichever samples a step lacks, a later step over all samples finds
/// the groups again. Its sums are then those of one process up to the order in which 90 numbers
/// below 128 are added: sums differ by less than 2 x 90 x 2^-53 x 90 x 128 < 1e-9.
class KMeansOfGroups : public AlgorithmOnNodes {
 protected:
  static constexpr double samples = 90;
  static constexpr std::size_t steps = 80;
  static constexpr std::size_t groups = 3;
  static constexpr std::size_t width = 3;

  struct Tensors {
    std::vector<double> sums;
    std::vector<double> distance;

    /// The number of samples that a step has counted in `distance`.
    [[nodiscard]] double samples_of(std::size_t step) const { return distance[2 * step + 1]; }
    /// The number of samples that a step has counted in `sums`.
    [[nodiscard]] double samples_of_sums(std::size_t step) const {
      double count = 0;
      for (std::size_t group = 0; group < groups; ++group)
        count += sums[(step * groups + group) * width + width - 1];
      return count;
    }
    [[nodiscard]] std::vector<double> sums_of(std::size_t step) const {
      const auto from = sums.begin() + static_cast<std::ptrdiff_t>(step * groups * width);
      return {from, from + groups * width};
    }
  };

  void SetUp() override {
    AlgorithmOnNodes::SetUp();
    std::string rows = "x,y,group\n";
    for (int i = 0; i < 100; ++i)
      rows += std::to_string((i % 3 == 1 ? 100 : 0) + 0.01 * (i * 37 % 100)) + "," +
              std::to_string((i % 3 == 2 ? 100 : 0) + 0.01 * (i * 61 % 100)) + "," +
              std::to_string(i % 3) + "\n";
    work_.write("rows.csv", rows);
  }

  /// Returns the flags of the job that saves its tensors in `file` of the folder `work_`.
  std::string job(const std::string& file) {
    return " --model kmeans:k=3,steps=80 --data csv:" + (work_.path() / "rows.csv").string() +
           ",label=group --scale none --split 90 --workers 3 --mode central --barrier bsp "
           "--steps 80 --json --quiet --save " +
           (work_.path() / file).string() + " ";
  }

  Tensors read(const std::string& file) {
    Tensors tensors;
    const auto stored = safetensors::read((work_.path() / file).string());
    EXPECT_TRUE(stored);
    if (!stored) return tensors;
    const auto copy = [&](const std::string& name, std::vector<double>& values, std::size_t size) {
      const safetensors::Tensor* tensor = stored->find(name);
      ASSERT_NE(tensor, nullptr);
      ASSERT_EQ(tensor->size(), size);
      values.resize(size);
      std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    };
    copy("sums", tensors.sums, steps * groups * width);
    copy("distance", tensors.distance, steps * 2);
    return tensors;
  }

  /// Expects that the job has counted each sample once in each step but `lacking_max`, that these
  /// lack the part of one of three workers, and that the others have the values of one process.
  /// Returns the steps that lack a part. The tensors have different owners, so a step may lack the
  /// part in one of them only if a worker `was_killed`: its update had reached one owner.
  std::vector<std::size_t> expect_values_of_one_process(const ProgramResult& many,
                                                        std::size_t lacking_max,
                                                        bool was_killed = false) {
    std::vector<std::size_t> lacking;
    compare_with_one_process(many, lacking, was_killed);
    EXPECT_LE(lacking.size(), lacking_max);
    return lacking;
  }

  void compare_with_one_process(const ProgramResult& many, std::vector<std::size_t>& lacking,
                                bool was_killed) {
    const ProgramResult one = run(work_, program(), words("train" + job("one")));
    ASSERT_EQ(one.code, 0) << one.err;
    ASSERT_EQ(many.code, 0) << many.err;
    const Tensors expected = read("one");
    const Tensors found = read("many");
    for (std::size_t step = 0; step < steps; ++step) {
      if (found.samples_of(step) != samples || found.samples_of_sums(step) != samples) {
        lacking.push_back(step);
        EXPECT_TRUE(was_killed || found.samples_of(step) == found.samples_of_sums(step)) << step;
        for (const double count : {found.samples_of(step), found.samples_of_sums(step)})
          EXPECT_TRUE(count == samples || count == samples * 2 / 3) << step << ' ' << count;
        continue;
      }
      const auto sums = found.sums_of(step);
      const auto sums_of_one = expected.sums_of(step);
      for (std::size_t i = 0; i < sums.size(); ++i)
        EXPECT_NEAR(sums[i], sums_of_one[i], 1e-9) << step << ' ' << i;
    }
    EXPECT_EQ(found.samples_of(steps - 1), samples);
    EXPECT_EQ(found.samples_of_sums(steps - 1), samples);
    EXPECT_NEAR(distance_of(many), distance_of(one), 1e-9);
  }
};

/// The round during which the worker dies goes on without it.
TEST_F(KMeansOfGroups, CountsAllSamplesInAllStepsButTheOneInWhichANodeIsKilled) {
  const Folder other;
  Process submit{other, program(), words("submit" + to(0) + job("many") + "--delay exp:80ms")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  processes_[2]->signal(SIGKILL);
  const auto lacking = expect_values_of_one_process(submit.wait(), 1, true);
  // No step lacks samples if the worker had pushed its update and waited for the others.
  if (lacking.empty()) return;
  for (std::size_t step = 0; step < lacking[0]; ++step)
    EXPECT_EQ(read("many").sums_of(step), read("one").sums_of(step)) << "to the bit";
}

TEST_F(KMeansOfGroups, CountsNoSampleTwiceIfANodeJoins) {
  const Folder other;
  Process submit{other, program(), words("submit" + to(0) + job("many") + "--delay exp:80ms")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  const Folder folder;
  Process joiner{folder, program(),
                 words("node --name d --listen 127.0.0.1:* --join " + addresses_[0])};
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::count_if(members(), [](const auto& member) {
             return member["node"] == "d" && member["state"] == "running" && member["step"] > 0;
           }) == 1;
  })) << status();
  expect_values_of_one_process(submit.wait(), 0);
  joiner.signal(SIGKILL);
}

/// The rounds between the worker's last step and the new deal go on without it.
TEST_F(KMeansOfGroups, CountsNoSampleTwiceIfANodeLeaves) {
  const Folder other;
  Process submit{other, program(), words("submit" + to(0) + job("many") + "--delay exp:80ms")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  ASSERT_EQ(run(work_, program(), words("leave" + to(2))).code, 0);
  expect_values_of_one_process(submit.wait(), steps / 2);
}

/// The program of examples/10_pagerank.cpp.
class PageRankOnNodes : public Nodes {
 protected:
  const char* program() override { return STARLING_PAGERANK_EXAMPLE; }

  /// Expects that the file has the ranks that satisfy PageRank's equation.
  static void expect_ranks(const Folder& folder, const std::string& file, double error = 1e-9) {
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
      ASSERT_NEAR(found[page], ranks[page], error) << page;
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

TEST_F(PageRankOnNodes, AlsoIfANodeJoins) {
  const Folder folder;
  Process submit{folder, program(),
                 words("submit" + to(0) + pagerank + "250 --delay exp:20ms --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << submit.err();
  const Folder folder_of_joiner;
  Process joiner{folder_of_joiner, program(),
                 words("node --name d --workers 2 --listen 127.0.0.1:* --join " + addresses_[0])};
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::count_if(members(), [](const auto& member) {
             return member["node"] == "d" && member["state"] == "running" && member["step"] > 0;
           }) == 2;
  })) << status();
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_ranks(folder, "m");
  joiner.signal(SIGKILL);
}

/// Worker 0 has ended when one of the two slow workers dies: the other one computes all pages.
TEST_F(PageRankOnNodes, AlsoIfANodeIsKilledWhenSomeWorkersHaveEnded) {
  const Folder folder;
  Process submit{
      folder, program(),
      words("submit" + to(0) +
            "--data web:pages=300 --model pagerank:pages=300 --workers 3 --mode peer "
            "--barrier asp --steps 120 --delay const:5ms --straggler 2:30x --quiet --save m")};
  const auto is_done = [](const auto& member) {
    return member["member"] == 0 && member["state"] == "done";
  };
  ASSERT_TRUE(wait_until([&] { return std::ranges::any_of(members(), is_done); })) << submit.err();
  const auto all = members();
  const auto victim =
      std::ranges::find_if(all, [](const auto& member) { return member["member"] == 2; });
  ASSERT_NE(victim, all.end()) << all;
  EXPECT_EQ((*victim)["state"], "running");
  ASSERT_LT((*victim)["step"], 40) << "the ranks must be wrong by more than 1e-6 still";
  const std::string node = (*victim)["node"];
  ASSERT_EQ(node.size(), 1U);
  processes_.at(static_cast<std::size_t>(node[0] - 'a'))->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  // Each step multiplies the error by at most 0.85, and 80 steps of it by less than 3e-6.
  expect_ranks(folder, "m", 1e-7);
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
  const ProgramResult mixed = ran("train" + std::string{kmeans} + "--steps 8 --exchange gossip");
  EXPECT_EQ(mixed.code, 2);
  EXPECT_NE(mixed.err.find("--exchange: gossip needs updates that are gradients, and those of this "
                           "job are not; valid: owners, broadcast"),
            std::string::npos)
      << mixed.err;
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
