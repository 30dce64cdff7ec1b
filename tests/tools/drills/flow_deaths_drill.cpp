/// Map-reduce on hosts of their own: nodes that are killed while they compute, and every operation.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

using Files = std::map<std::string, std::string>;

/// Returns the files of a folder by name.
Files files_in(const Folder& folder, const std::string& name) {
  Files files;
  for (const auto& file : std::filesystem::directory_iterator{folder.path() / name}) {
    const std::string part = file.path().filename().string();
    files[part] = folder.read(name + "/" + part);
  }
  return files;
}

class FlowDrill : public Drill {
 protected:
  /// Writes the files that the flows read.
  void write_data(std::mt19937& random) {
    std::string text;
    std::string links;
    for (int i = 0; i < 3'000'000; ++i) {
      const auto number = random() % 50'000;
      text += "w" + std::to_string(number * number / 50'000) + (i % 12 == 0 ? "\n" : " ");
    }
    for (int i = 0; i < 500'000; ++i)
      links += std::to_string(random() % 50'000) + " " + std::to_string(random() % 60'000) + "\n";
    fleet_->work_folder().write("a.txt", text);
    fleet_->work_folder().write("links.txt", links);
  }
};

/// STARLING_DRILL_DEATHS is the number of deaths, 30 if it is not set.
TEST_F(FlowDrill, EndsWithTheSameFilesWhicheverNodeIsKilledWhenever) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(5));
  if (IsSkipped()) return;
  const unsigned seed = draw_seed();
  report("seed", std::to_string(seed));
  std::mt19937 random{seed};
  write_data(random);
  const int deaths = number_of_deaths(30);
  const Folder& work = fleet_->work_folder();
  const std::array<std::string, 3> flows{
      "wordcount " + (work.path() / "a.txt").string() + " --parts 12",
      "sort " + (work.path() / "a.txt").string() + " --parts 12",
      "pagerank " + (work.path() / "links.txt").string() + " --iterations 8 --parts 6"};
  const auto submit_flow = [&](std::size_t node, std::size_t i, const std::string& name) {
    fleet_->submit(node, "--flow " + flows[i] + " --workers 5 --json --quiet --output " +
                             (work.path() / name).string());
  };
  std::array<Files, 3> expected;
  std::array<Time, 3> takes{};
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const std::string name = "alone" + std::to_string(i);
    const std::string output = " --quiet --output " + (work.path() / name).string();
    ASSERT_EQ(fleet_->run("run " + flows[i] + output).code, 0);
    expected[i] = files_in(work, name);
    const auto start = hosts::Fleet::Clock::now();
    submit_flow(1, i, name + "-on-nodes");
    ASSERT_EQ(fleet_->finish().code, 0);
    takes[i] = std::chrono::duration_cast<Time>(hosts::Fleet::Clock::now() - start);
  }
  std::vector<std::size_t> node_on_host{0, 1, 2, 3, 4};
  std::uint64_t again = 0;
  std::size_t workers_died = 0;
  for (int death = 0; death < deaths; ++death) {
    SCOPED_TRACE("death " + std::to_string(death));
    const std::size_t i = random() % flows.size();
    const std::size_t asked = random() % node_on_host.size();
    const std::size_t host = (asked + 1 + random() % 4) % node_on_host.size();
    const std::string name = "out" + std::to_string(death);
    submit_flow(node_on_host[asked], i, name);
    std::this_thread::sleep_for(takes[i] * (random() % 1000) / 1000);
    fleet_->kill(node_on_host[host]);
    const ProgramResult ran = fleet_->finish();
    ASSERT_EQ(ran.code, 0) << flows[i] << "\n" << ran.err;
    EXPECT_EQ(files_in(work, name), expected[i]) << flows[i];
    const auto summary = nlohmann::json::parse(ran.out);
    again += summary["parts_again"].get<std::uint64_t>();
    workers_died += summary["workers_died"].get<std::size_t>();
    node_on_host[host] = fleet_->start(host);
    ASSERT_TRUE(fleet_->wait_until_members_agree(20s));
  }
  for (const std::string& name : work.names())
    EXPECT_EQ(name.find(".starling-"), std::string::npos) << name;
  report("workers_died", std::to_string(workers_died));
  report("parts_computed_again", std::to_string(again));
  EXPECT_GT(workers_died, 0U) << "no node was killed while a flow ran";
  EXPECT_GT(again, 0U);
}

/// Nodes of a program whose flow compares every operation with loops.
class OperationsOnHosts : public FlowDrill {};

TEST_F(OperationsOnHosts, FindWhatLoopsFind) {
  auto network = hosts::Hosts::make(3);
  if (!network) GTEST_SKIP() << network.error().message;
  fleet_ = std::make_unique<hosts::Fleet>(STARLING_OWN_PROGRAM, *std::move(network));
  for (std::size_t host = 0; host < 3; ++host) fleet_->start(host);
  ASSERT_TRUE(fleet_->wait_until_members_agree(20s));
  fleet_->work_folder().write("in.txt", "unread\n");
  const std::string file = (fleet_->work_folder().path() / "in.txt").string();
  // STARLING_CASES: the number of cases with each number of workers, 125 if it is not set.
  const char* given = std::getenv("STARLING_CASES");
  const std::string cases = given != nullptr ? given : "125";
  for (int workers = 1; workers <= 8; ++workers) {
    const ProgramResult ran = fleet_->run(
        "submit " + fleet_->client_flags(1) + " --flow operations " + file + " --cases " + cases +
        " --big-group --quiet --workers " + std::to_string(workers));
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "compared " + cases + " cases\n1001 groups\n") << workers;
  }
}

}  // namespace
}  // namespace starling::program
