#include "starling/tools/cluster/follow/job_choice.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "starling/tools/cluster/data_paths.hpp"
#include "starling/tools/cluster/follow/job_progress.hpp"
#include "starling/tools/cluster/job_naming.hpp"
#include "starling/tools/program/time_text.hpp"

namespace starling::program {
namespace {

const std::vector<JobCandidate> three_jobs{
    {123456, "iris", "softmax"}, {129999, "iris-2", "mlp"}, {7, "digits", "lenet5"}};

/// Returns the name of the chosen job, or the error message.
std::string chosen(std::string_view text,
                   const std::vector<JobCandidate>& candidates = three_jobs) {
  const auto index = choose(text, candidates, "none");
  return index ? candidates[*index].name : index.error().message;
}

TEST(JobChoice, FindsAJobByItsNameItsNumberOrAUniquePrefix) {
  EXPECT_EQ(chosen("iris"), "iris");
  EXPECT_EQ(chosen("iris-"), "iris-2");
  EXPECT_EQ(chosen("d"), "digits");
  EXPECT_EQ(chosen("7"), "digits");
  EXPECT_EQ(chosen("123"), "iris");
  EXPECT_EQ(chosen("129999"), "iris-2");
  EXPECT_EQ(chosen("", {{1, "alone", ""}}), "alone");
}

TEST(JobChoice, ListsTheMatchingJobsIfThereAreSeveral) {
  EXPECT_EQ(chosen("ir"),
            "'ir' matches more than one job; valid: one of iris (softmax), iris-2 (mlp)");
  EXPECT_EQ(chosen("12"),
            "'12' matches more than one job; valid: one of iris (softmax), iris-2 (mlp)");
  EXPECT_EQ(chosen("x"),
            "'x' is not a job here; valid: iris (softmax), iris-2 (mlp), digits (lenet5)");
  EXPECT_EQ(
      chosen(""),
      "there are several jobs, and none is named; valid: iris (softmax), iris-2 (mlp), digits "
      "(lenet5)");
  EXPECT_EQ(chosen("a", {}), "'a': none");
  EXPECT_EQ(chosen("", {}), "none");
}

TEST(JobChoice, DistinguishesJobsOfOneNameByTheirNumbers) {
  const std::vector<JobCandidate> both{{11, "same", "a"}, {12, "same", ""}};
  EXPECT_EQ(chosen("same", both),
            "'same' matches more than one job; valid: one of same (11, a), same (12)");
  EXPECT_EQ(*choose("12", both, ""), 1U);
}

TEST(Snapshot, ListsANodeThatCameBackOnce) {
  using core::NodeState;
  const auto node = [](core::NodeId id, const char* name, NodeState state) {
    return core::NodeRecord{
        .id = id, .address = std::string{"tcp://"} + name, .name = name, .state = state};
  };
  std::vector<core::NodeRecord> nodes{
      node(1, "a", NodeState::alive), node(2, "b", NodeState::dead),
      node(3, "c", NodeState::dead),  node(4, "b", NodeState::dead),
      node(5, "c", NodeState::left),  node(6, "c", NodeState::alive)};
  erase_replaced_nodes(nodes);
  std::vector<core::NodeId> ids;
  for (const core::NodeRecord& listed : nodes) ids.push_back(listed.id);
  EXPECT_EQ(ids, (std::vector<core::NodeId>{1, 4, 6}));
}

TEST(Snapshot, ShowsTheFateOfTheLastProcessOfANode) {
  using core::NodeState;
  for (const auto& [first, second] :
       {std::pair{NodeState::left, NodeState::dead}, std::pair{NodeState::dead, NodeState::left}})
    for (const char* address : {"tcp://b", "tcp://other"}) {
      std::vector<core::NodeRecord> nodes{
          {.id = 9, .address = "tcp://b", .name = "b", .state = first},
          {.id = 4, .address = address, .name = "b", .state = second},
          {.id = 5, .address = "tcp://x", .name = "", .state = NodeState::dead},
          {.id = 6, .address = "tcp://x", .name = "", .state = NodeState::dead}};
      erase_replaced_nodes(nodes);
      ASSERT_EQ(nodes.size(), 3U);
      EXPECT_EQ(nodes[0].id, 4U);
      EXPECT_EQ(nodes[0].state, second);
    }
}

TEST(JobNaming, MakesAnUnusedNameOfModelAndData) {
  const auto stem = [](const std::string& model, const std::string& data) {
    return name_stem({{"model", model}, {"data", data}});
  };
  EXPECT_EQ(stem("softmax", "digits:n=300"), "softmax-digits");
  EXPECT_EQ(stem("mlp:784-32-10", "csv:/home/u/my rows.csv,label=x"), "mlp-my");
  EXPECT_EQ(stem("mf:rank=8", "ratings"), "mf-ratings");
  EXPECT_EQ(stem("", "digits:n=300"), "digits");
  EXPECT_EQ(stem("", ""), "data");
  EXPECT_EQ(stem("softmax", "csv:/\xc3\xa9t\xc3\xa9.csv"), "softmax-t");
  EXPECT_EQ(stem("_own:_x", "csv:/data/__rows.csv"), "own-rows");
  EXPECT_EQ(stem("_", "__"), "model-data");
  EXPECT_EQ(next_name("a-b", {}), "a-b-1");
  EXPECT_EQ(next_name("a-b", {"a-b-1", "a-b-9", "a-bc-77", "a-b-x", "a-b"}), "a-b-10");
  EXPECT_EQ(next_name("a-b", {"a-b-999999999", "a-b-1000000000"}), "a-b-1000000001");
}

TEST(JobNaming, MakesANameOfAFlowAndItsFirstFile) {
  const auto stem = [](const std::string& flow, const std::string& file) {
    return name_stem({{"flow", flow}, {"input", file}, {"input", "/other"}});
  };
  EXPECT_EQ(stem("wordcount", "/home/u/corpus.txt"), "wordcount-corpus");
  EXPECT_EQ(stem("long-lines", "a.gz"), "long-a");
  EXPECT_EQ(stem("sort", "/data/.csv"), "sort-csv");
  EXPECT_EQ(stem("sort", "/data/"), "sort-files");
}

TEST(DataPaths, MakesFilesAbsoluteAndKeepsEverythingElse) {
  const auto with_prefixed_files = [](const std::string& source) {
    return with_files(source, [](const std::string& file) { return "/at/" + file; });
  };
  EXPECT_EQ(with_prefixed_files("csv:rows.csv,label=last,id=x"),
            "csv:/at/rows.csv,label=last,id=x");
  EXPECT_EQ(with_prefixed_files("csv:rows.csv,ignore=a,b,category=c,d"),
            "csv:/at/rows.csv,ignore=a,b,category=c,d");
  EXPECT_EQ(with_prefixed_files("idx:images,labels"), "idx:/at/images,/at/labels");
  EXPECT_EQ(with_prefixed_files("cifar10:one,two"), "cifar10:/at/one,/at/two");
  EXPECT_EQ(with_prefixed_files("libsvm:rows,features=9"), "libsvm:/at/rows,features=9");
  EXPECT_EQ(with_prefixed_files("npy:x.npy,y.npy"), "npy:/at/x.npy,/at/y.npy");
  EXPECT_EQ(with_prefixed_files("npy:x.npy,label=last"), "npy:/at/x.npy,label=last");
  EXPECT_EQ(with_prefixed_files("npz:all.npz,features=x,labels=y"),
            "npz:/at/all.npz,features=x,labels=y");
  EXPECT_EQ(with_prefixed_files("images:folder,size=8x8"), "images:/at/folder,size=8x8");
  EXPECT_EQ(with_prefixed_files("digits:n=300"), "digits:n=300");
  EXPECT_EQ(with_prefixed_files("digits"), "digits");
  // Sources that are not built in: files count only if they exist and stand before the first
  // option.
  EXPECT_EQ(with_prefixed_files("ring:radius"), "ring:radius");
  const std::string file = testing::TempDir() + "starling_data_paths";
  std::ofstream{file} << "rows";
  EXPECT_EQ(with_prefixed_files("safetensors:" + file + ",task=value"),
            "safetensors:/at/" + file + ",task=value");
  EXPECT_EQ(with_prefixed_files("ring:n=3," + file), "ring:n=3," + file);
  std::filesystem::remove(file);
}

TEST(DataPaths, RefusesRelativePathsIfANodeIsOnAnotherMachine) {
  core::NodeRecord local_node;
  local_node.address = "tcp://127.0.0.1:7400";
  core::NodeRecord remote_node;
  remote_node.address = "tcp://192.0.2.7:7400";
  remote_node.name = "b";
  const Settings relative{{"data", "csv:rows.csv", "--data"}};
  const auto absolute = with_absolute_paths(relative, {local_node});
  ASSERT_TRUE(absolute);
  EXPECT_TRUE((*absolute)[0].text.starts_with("csv:/")) << (*absolute)[0].text;
  EXPECT_TRUE((*absolute)[0].text.ends_with("/rows.csv")) << (*absolute)[0].text;
  const auto refused = with_absolute_paths(relative, {local_node, remote_node});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(
      "--data: 'csv:rows.csv' is relative to this program's working folder, and node b at "
      "tcp://192.0.2.7:7400 is on another machine; valid: "))
      << refused.error().message;
  // A dead node reads nothing, and an absolute path is the same everywhere.
  remote_node.state = core::NodeState::dead;
  EXPECT_TRUE(with_absolute_paths(relative, {local_node, remote_node}));
  remote_node.state = core::NodeState::alive;
  EXPECT_TRUE(
      with_absolute_paths({{"data", "csv:/data/rows.csv", "--data"}}, {local_node, remote_node}));
  EXPECT_TRUE(with_absolute_paths({{"data", "digits", "--data"}}, {local_node, remote_node}));
  for (const char* source : {"csv:/data//x.csv,ignore=a,b", "csv:/data/./x.csv",
                             "npz:/data/x.npz,labels=y", "csv:/data/x.csv,separator=;"}) {
    const auto unchanged =
        with_absolute_paths({{"data", source, "--data"}}, {local_node, remote_node});
    ASSERT_TRUE(unchanged) << unchanged.error().message;
    EXPECT_EQ((*unchanged)[0].text, source);
  }
  // A node without an address may be on any machine.
  for (const char* address : {"", "x", "tcp:/", "tcp://", "tcp://:", "tcp://[:1"}) {
    local_node.address = address;
    EXPECT_FALSE(with_absolute_paths(relative, {local_node})) << address;
  }
}

/// Returns a job of two workers at steps 40 and 60, both in `state`.
JobSnapshot job_of_two(std::uint8_t state) {
  JobSnapshot job;
  job.configuration = std::make_shared<const core::Configuration>(
      core::first_configuration({{0, 1, true, true, 5}, {1, 1, true, true, 6}}, 3, 2));
  job.reported_state = wire::JobState::running;
  for (core::MemberId id : {0, 1}) {
    wire::MemberStatus member;
    member.member = id;
    member.incarnation = 1;
    member.state = state;
    member.step = id == 0 ? 40 : 60;
    member.loss_count = member.updates = member.step;
    job.worker_updates[{id, 1}] = member.updates;
    job.members[id] = {member, "a"};
  }
  job.steps_total = 100;
  job.steps_per_data_epoch = 50;
  job.updates_per_s = 20;
  job.loss_sum = 5;
  job.loss_count = 10;
  job.last_step_ms = 2000;
  job.started_ms = 1000;
  return job;
}

// Values of wire::MemberStatus::state.
constexpr std::uint8_t running = 1;
constexpr std::uint8_t ended = 2;
constexpr std::uint8_t failed = 4;

TEST(JobProgress, SaysHowFarAJobIsAndHowLongItStillTakes) {
  const JobSnapshot job = job_of_two(running);
  EXPECT_EQ(job.state(), wire::JobState::running);
  const JobProgress progress = progress_of(job, 3000);
  EXPECT_EQ(progress.step, 60U);
  EXPECT_DOUBLE_EQ(progress.data_epoch.value(), 1.2);
  EXPECT_DOUBLE_EQ(progress.done_share.value(), 0.5);
  // One worker has 60 steps to go, the other 40, at 20 updates a second together.
  EXPECT_DOUBLE_EQ(progress.remaining_s.value(), 5);
  EXPECT_EQ(progress_text(job, 3000),
            "running, epoch 1.2, step 60 of 100, loss 0.5, 20 updates/s, 5.0 s left");
}

TEST(JobProgress, CountsAWorkerThatIsBehindOneThatHasEnded) {
  JobSnapshot job = job_of_two(running);
  job.members[1].status.state = ended;
  job.members[1].status.step = 100;
  EXPECT_DOUBLE_EQ(progress_of(job, 3000).done_share.value(), 0.7);
  EXPECT_DOUBLE_EQ(progress_of(job, 3000).remaining_s.value(), 3);
}

TEST(JobProgress, CountsTheTimeLimitAsProgress) {
  JobSnapshot job = job_of_two(running);
  job.steps_total = 0;
  job.time_limit_ms = 10'000;
  EXPECT_DOUBLE_EQ(progress_of(job, 3000).remaining_s.value(), 8);
  EXPECT_DOUBLE_EQ(progress_of(job, 3000).done_share.value(), 0.2);
  job.time_limit_ms = 0;
  EXPECT_FALSE(progress_of(job, 3000).remaining_s);
  EXPECT_FALSE(progress_of(job, 3000).done_share);
}

TEST(JobProgress, SaysHowAJobEnded) {
  JobSnapshot job = job_of_two(ended);
  EXPECT_EQ(progress_text(job, 9000), "done, epoch 1.2, step 60 of 100, loss 0.5, 50 updates/s");
  job.reported_state = wire::JobState::stopped;
  EXPECT_EQ(job.state(), wire::JobState::stopped);
  job.members[1].status.state = running;
  EXPECT_EQ(job.state(), wire::JobState::running);
  job.members[1].status.state = failed;
  job.members[1].status.why = "out of memory";
  EXPECT_EQ(job.state(), wire::JobState::failed);
  EXPECT_TRUE(progress_text(job, 9000).starts_with("failed: out of memory, epoch"))
      << progress_text(job, 9000);
  const JobSnapshot new_job;
  EXPECT_EQ(progress_text(new_job, 0), "preparing");
}

TEST(TimeText, IsShort) {
  EXPECT_EQ(time_text(0), "0.0 s");
  EXPECT_EQ(time_text(12.4), "12 s");
  EXPECT_EQ(time_text(200), "3 min 20 s");
  EXPECT_EQ(time_text(18'600), "5 h 10 min");
}

}  // namespace
}  // namespace starling::program
