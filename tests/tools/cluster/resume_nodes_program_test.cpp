/// Jobs on nodes that resume from a checkpoint.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

const std::string resumed_job = "--data digits:n=1000 --model softmax --workers 3 --quiet ";

/// The scaling is that of the model with which the first job began, and not that of its data.
TEST_F(Nodes, ScaleTheDataOfAResumedJobAsItsCheckpointSays) {
  const std::string near = "--data linear:d=3,n=300 --model linear --scale standard --quiet ";
  ASSERT_EQ(starling(work_, "train --steps 20 --save m " + near).code, 0);
  std::ofstream far{work_.path() / "far.csv"};
  far << "a,b,c,y\n";
  for (int i = 0; i < 300; ++i)
    far << 500 + i % 7 << ',' << 300 + i % 11 << ',' << i % 13 << ',' << 900 + i % 7 << '\n';
  far.close();
  const std::string job =
      "--data csv:far.csv --model linear --scale standard --optimizer sgd:lr=1e-7 --quiet ";
  ASSERT_EQ(starling(work_, "train --init m --steps 5 --checkpoint c " + job).code, 0);
  ASSERT_EQ(starling(work_, "submit --detach --resume c --steps 20 " + job + to(0)).code, 0);
  const ProgramResult ran = starling(work_, "attach --json --save s" + to(0));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto target_shift = [&](const std::string& file) {
    const std::string text = starling(work_, "inspect --json " + file).out;
    return nlohmann::json::parse(text)["metadata"].value("target_shift", "");
  };
  EXPECT_NE(target_shift("c"), "");
  EXPECT_EQ(target_shift("s"), target_shift("c"));
}

/// After the death of a node, samples are dealt anew, and the next checkpoint says so.
TEST_F(Nodes, JoinAJobThatHasReplacedTheCheckpointFromWhichItResumed) {
  ASSERT_EQ(starling(work_, "train --steps 20 --checkpoint c " + resumed_job).code, 0);
  Process submit{work_, STARLING_PROGRAM,
                 words("submit --delay const:20ms --steps 100000 --resume c --checkpoint c "
                       "--checkpoint-every 10 " +
                       resumed_job + to(0))};
  ASSERT_TRUE(wait_until([&] { return members().size() >= 3; })) << submit.err();
  processes_[2]->signal(SIGKILL);
  const auto has_former_deals = [&] {
    const std::string text = starling(work_, "inspect --json c").out;
    return text.find("starling.deals") != std::string::npos;
  };
  ASSERT_TRUE(wait_until(has_former_deals)) << submit.err();
  const Folder late;
  Process node{late, STARLING_PROGRAM,
               words("node --listen 127.0.0.1:* --name d --join " + addresses_[0])};
  EXPECT_TRUE(wait_until([&] { return status().find("running, on d") != std::string::npos; }))
      << node.err() << status();
  node.signal(SIGKILL);
  submit.signal(SIGKILL);
}

TEST_F(Nodes, RefuseToResumeFromAnOlderCheckpointThanSubmit) {
  ASSERT_EQ(starling(work_, "train --steps 20 --checkpoint old " + resumed_job).code, 0);
  ASSERT_EQ(starling(work_, "train --steps 40 --resume old --checkpoint c " + resumed_job).code, 0);
  for (const Folder& folder : folders_)
    std::filesystem::copy_file(work_.path() / "old", folder.path() / "c");
  const ProgramResult ran =
      starling(work_, "submit --steps 60 --resume /proc/self/cwd/c " + resumed_job + to(0));
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(
      ran.err.find("--resume: /proc/self/cwd/c: holds a checkpoint after 60 updates on the nodes, "
                   "but one after 120 updates here; valid: the same file on all machines"),
      std::string::npos)
      << ran.err;
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
}

TEST_F(Nodes, DoNotJoinAJobWithOtherData) {
  // Writes three rows, the second of which has the feature `feature`.
  const auto write_rows = [](const Folder& folder, const std::string& feature) {
    folder.write("x.csv", "1,2,0\n" + feature + ",1,1\n3,1,0\n");
  };
  for (const Folder& folder : folders_) write_rows(folder, "2");
  Process job{work_, STARLING_PROGRAM,
              words("submit --data csv:/proc/self/cwd/x.csv,task=class --model softmax --split 2 "
                    "--workers 2 --delay exp:10ms --seconds 60" +
                    to(0))};
  ASSERT_TRUE(wait_until([&] { return is_training(); })) << job.err();
  const Folder other;
  write_rows(other, "9");
  Process late{other, STARLING_PROGRAM,
               words("node --listen 127.0.0.1:* --name late --join " + addresses_[0])};
  EXPECT_TRUE(wait_until([&] {
    return late.err().find("this node does not join: it reads other data than the job's nodes") !=
           std::string::npos;
  })) << late.err();
  late.signal(SIGKILL);
  job.signal(SIGKILL);
}

TEST_F(Nodes, LeaveTheMetricsOfAnEarlierJobIfTheyRefuseOne) {
  work_.write("f", "{}\n");
  work_.write("rows.csv", "a,y\n1,2\n2,4\n3,6\n4,8\n5,9\n6,12\n");
  const ProgramResult ran = starling(
      work_, "submit --data csv:/proc/self/cwd/rows.csv --workers 1 --quiet --metrics f" + to(0));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_EQ(work_.read("f"), "{}\n");
}

}  // namespace
}  // namespace starling::program
