/// `starling node`, `submit` and `status`, run as processes on this machine.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

TEST_F(Nodes, TrainASubmittedJobInEveryMode) {
  for (const char* mode_flags : {"--mode peer --barrier pssp:s=4,beta=2",
                                 "--mode hybrid --barrier asp", "--mode central --barrier bsp"}) {
    const ProgramResult ran =
        starling(work_, "submit" + to(1) +
                            "--data digits:n=1000 --model softmax --workers 4 "
                            "--epochs 3 --quiet --json --save m.safetensors " +
                            mode_flags);
    EXPECT_EQ(ran.code, 0) << mode_flags << "\n" << ran.err;
    const auto json = nlohmann::json::parse(ran.out, nullptr, false);
    // 800 of the 1,000 samples are to train on: 7 steps of 4 workers with 32 samples each.
    EXPECT_EQ(json["updates"], 4 * 3 * 7) << ran.out;
    EXPECT_GT(json["test_accuracy"], 0.5) << ran.out;
    const ProgramResult evaluated = starling(work_, "evaluate m.safetensors --json");
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    EXPECT_EQ(nlohmann::json::parse(evaluated.out)["accuracy"], json["test_accuracy"]);
  }
}

TEST_F(Nodes, GoOnTrainingIfOneIsKilledAndLeaveOnSigterm) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 300 --json")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  processes_[0]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\"spread\":{\"min\":300,\"median\":300,\"max\":300"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.err.find("node a is gone: 2 of 3 workers go on without it\n"), std::string::npos)
      << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["workers_lost"], 1) << ran.out;
  EXPECT_NE(ran.err.find("job " + json["name"].get<std::string>() + " begins\n"), std::string::npos)
      << ran.err;
  EXPECT_NE(status().find("a  " + addresses_[0] + "  dead"), std::string::npos) << status();
  processes_[2]->signal(SIGTERM);
  EXPECT_EQ(processes_[2]->wait().code, 0);
  processes_.pop_back();
  EXPECT_NE(status().find("left"), std::string::npos) << status();
}

TEST_F(Nodes, MayAllLeaveAtOnce) {
  Process submit{work_, STARLING_PROGRAM, job_of_three(1, "--seconds 100")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  for (auto& process : processes_) process->signal(SIGTERM);
  for (auto& process : processes_) EXPECT_EQ(process->wait().code, 0);
  EXPECT_EQ(submit.wait().code, 0) << submit.err();
  processes_.clear();
}

TEST_F(Nodes, ReportTheStatusOfAJobAndStopIt) {
  const ProgramResult without_job = starling(work_, "stop" + to(0));
  EXPECT_EQ(without_job.code, 2);
  EXPECT_NE(without_job.err.find("no job runs"), std::string::npos) << without_job.err;

  const Folder other;
  Process submit{other, STARLING_PROGRAM,
                 job_of_three(2, "--steps 100000 --json --quiet --save m")};
  const auto json = [&] {
    return nlohmann::json::parse(starling(work_, "status --json" + to(1)).out);
  };
  ASSERT_TRUE(wait_until([&] {
    const auto status_json = json();
    return !status_json["jobs"].empty() && status_json["jobs"][0].value("updates", 0) >= 30;
  }));
  const auto job = json()["jobs"][0];
  EXPECT_EQ(job["members"].size(), 3U) << job;
  EXPECT_GE(job["steps"]["max"], job["steps"]["min"]);
  EXPECT_EQ(job["settings"]["model"], "softmax");
  EXPECT_EQ(nlohmann::json::parse(
                starling(work_, "status --here --json" + to(1)).out)["jobs"][0]["members"]
                .size(),
            1U);
  const Folder watching;
  Process watch{watching, STARLING_PROGRAM, words("status --watch" + to(1))};
  EXPECT_TRUE(wait_until([&] { return watch.out().find("updates/s") != std::string::npos; }));
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait().code, 0);

  const std::string name = job["name"];
  const std::string description = "softmax on digits:n=1000, peer, pssp:s=4,beta=2";
  EXPECT_NE(status().find("job " + name + ": " + description + "\n  running, epoch "),
            std::string::npos)
      << status();
  const ProgramResult wrong = starling(work_, "stop --job x" + to(0));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("--job: 'x' is not a job here; valid: " + name + " (" + description),
            std::string::npos)
      << wrong.err;
  const ProgramResult stopped = starling(work_, "stop" + to(0));
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_NE(stopped.out.find("without one, `attach --save FILE` does"), std::string::npos);
  const ProgramResult ended = submit.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["end"], "stopped") << ended.out;
  EXPECT_TRUE(std::filesystem::exists(other.path() / "m"));
}

/// The killed node is the only owner of some ranges.
TEST_F(Nodes, SayForWhichNodeABlockedJobWaits) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 100000 --copies 1")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  processes_[0]->signal(SIGKILL);
  EXPECT_TRUE(wait_until([&] { return submit.err().find("waits for a\n") != std::string::npos; }))
      << submit.err();
  submit.signal(SIGKILL);
}

TEST_F(Nodes, TellSubmitThatItsJobWasDropped) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 100000 --quiet")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  EXPECT_EQ(starling(work_, "stop --drop" + to(0)).code, 0);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("dropped"), std::string::npos) << ran.err;
}

TEST_F(Nodes, AcceptAJoiningNodeWithSeveralWorkers) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 400 --json --quiet")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  const Folder folder;
  Process joiner{folder, STARLING_PROGRAM,
                 words("node --name d --workers 3 --listen 127.0.0.1:* --join " + addresses_[0])};
  EXPECT_TRUE(wait_until([&] {
    const auto status_json = nlohmann::json::parse(starling(work_, "status --json" + to(1)).out);
    return !status_json["jobs"].empty() &&
           std::ranges::count_if(status_json["jobs"][0]["members"], [](const auto& member) {
             return member["node"] == "d" && member["state"] == "running" && member["step"] > 0;
           }) == 3;
  })) << status();
  EXPECT_EQ(submit.wait().code, 0);
  joiner.signal(SIGKILL);
  const ProgramResult wrong = starling(work_, "node --workers 0");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("--workers: '0' must be a whole number >= 1"), std::string::npos)
      << wrong.err;
}

/// The flags of a small job, the same in all three modes.
constexpr const char* small_job_flags =
    "--data digits:n=1000 --model softmax --workers 4 --optimizer adam:lr=0.01 --batch 20 --quiet "
    "--json ";

TEST_F(Nodes, ResumeFromACheckpointThatOtherMembersMade) {
  const std::string file = (work_.path() / "c.ckpt").string();
  for (const std::string mode_flags :
       {"--mode peer --barrier pssp:s=4,beta=2 ", "--mode peer --exchange broadcast ",
        "--mode hybrid --barrier asp ", "--mode central --barrier bsp "}) {
    const ProgramResult first =
        starling(work_, "submit" + to(1) + small_job_flags + mode_flags +
                            "--steps 40 --checkpoint-every 7 --checkpoint c.ckpt");
    ASSERT_EQ(first.code, 0) << mode_flags << "\n" << first.err;
    EXPECT_EQ(first.err, "") << mode_flags;
    // Resumes in one process, then on three nodes. The checkpoint has each of the 4 x 40 updates
    // once in each range.
    for (const std::string& command : {std::string{"train "}, "submit" + to(2)}) {
      const ProgramResult ran = starling(
          work_, command + small_job_flags + mode_flags + "--steps 60 --save m --resume " + file);
      ASSERT_EQ(ran.code, 0) << mode_flags << command << "\n" << ran.err;
      const auto json = nlohmann::json::parse(ran.out);
      EXPECT_EQ(json["updates"], 4 * 60) << mode_flags << command;
      EXPECT_EQ(json["spread"]["min"], 60) << mode_flags << command;
      EXPECT_GT(json["test_accuracy"], 0.7) << mode_flags << command << ran.out;
    }
  }
  // With 6 workers of 20 samples an epoch has 9 steps. 4 workers have made 40 steps, 3 epochs and a
  // part, so the others end theirs at step 4 * 9.
  const ProgramResult other = starling(
      work_, "submit" + to(1) +
                 "--data digits:n=1000 --model softmax --workers 6 --optimizer adam:lr=0.01 "
                 "--batch 20 --quiet --json --mode peer --barrier pssp:s=4,beta=2 --steps 90 "
                 "--resume " +
                 file);
  ASSERT_EQ(other.code, 0) << other.err;
  const auto json = nlohmann::json::parse(other.out);
  EXPECT_EQ(json["spread"]["min"], 90);
  EXPECT_GT(json["test_accuracy"], 0.7);
}

TEST_F(Nodes, SaveConsistentCheckpointsWhileTheyTrain) {
  for (const std::string mode_flags : {"--mode peer ", "--mode central --barrier bsp "}) {
    const std::string job = small_job_flags + mode_flags + "--steps 100000 --delay exp:4ms ";
    const Folder other;
    const auto file = other.path() / "c.ckpt";
    Process submit{other, STARLING_PROGRAM,
                   words("submit" + to(2) + job + "--checkpoint c.ckpt --checkpoint-every 10")};
    ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(file); }))
        << mode_flags << submit.err();
    const auto early = std::filesystem::last_write_time(file);
    EXPECT_TRUE(wait_until([&] { return std::filesystem::last_write_time(file) != early; }))
        << mode_flags << submit.err();
    submit.signal(SIGKILL);
    EXPECT_EQ(starling(work_, "stop --drop" + to(0)).code, 0);
    // The last checkpoint can be resumed from, although the job did not end properly.
    const ProgramResult ran =
        starling(work_, "train " + job + "--seconds 0.5 --resume " + file.string());
    EXPECT_EQ(ran.code, 0) << mode_flags << ran.err;
  }
}

TEST_F(Nodes, EndAJobWhenTheTargetIsReached) {
  const ProgramResult ran =
      starling(work_, "submit" + to(1) + small_job_flags +
                          "--until accuracy=0.6 --eval-every 10 --delay exp:1ms "
                          "--save m --checkpoint c");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_GE(json["test_accuracy"], 0.6) << ran.out;
  const ProgramResult again = starling(work_, "evaluate m --json");
  EXPECT_EQ(nlohmann::json::parse(again.out)["accuracy"], json["test_accuracy"]) << again.out;
  EXPECT_EQ(starling(work_, "inspect c").code, 0);
}

TEST_F(Nodes, GoOnPastTheDefaultEpochsTowardsATarget) {
  const ProgramResult ran =
      starling(work_, "submit" + to(1) +
                          "--data digits:n=400 --model softmax --workers 3 --quiet "
                          "--json --optimizer sgd:lr=0.002 --until accuracy=0.6 "
                          "--batch 100");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["end"], "reached") << ran.out;
  EXPECT_GE(json["test_accuracy"], 0.6) << ran.out;
  EXPECT_GT(json["spread"]["min"], 20) << ran.out;  // 10 epochs are 20 steps
}

TEST_F(Nodes, LearnATableWithDefaultSettings) {
  std::ostringstream rows;
  for (int i = 0; i < 100; ++i)
    rows << 1000 * i << ',' << (i * 7) % 13 << ',' << 5e4 + 30 * i << '\n';
  work_.write("t.csv", rows.str());
  const std::string data = "--data csv:" + (work_.path() / "t.csv").string();
  for (const char* mode : {"peer", "central"}) {
    const ProgramResult ran =
        starling(work_, "submit" + to(1) + data + " --quiet --json --save m --mode " + mode);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["end"], "completed") << ran.out;
    EXPECT_EQ(json["spread"]["min"], 1500) << ran.out;
    // The targets' variance is 750,000.
    EXPECT_LT(json["test_mse"], 1000) << ran.out;
    const auto again = nlohmann::json::parse(starling(work_, "evaluate m --json").out);
    EXPECT_DOUBLE_EQ(again["mse"], json["test_mse"]);
  }
}

TEST_F(Nodes, PrintTheirLogsAndLeaveOnRequest) {
  const ProgramResult all = starling(work_, "logs" + to(1));
  EXPECT_EQ(all.code, 0) << all.err;
  for (const char* line : {"Z a node b at tcp://", "Z c joined"})
    EXPECT_NE(all.out.find(line), std::string::npos) << all.out;
  const ProgramResult one = starling(work_, "logs --node c" + to(1));
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_NE(one.out.find("Z c joined"), std::string::npos) << one.out;
  EXPECT_EQ(one.out.find("Z a "), std::string::npos) << one.out;
  const ProgramResult none = starling(work_, "logs --node d" + to(1));
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("'d' is not a running node; valid: "), std::string::npos) << none.err;
  const Folder following;
  Process follow{following, STARLING_PROGRAM, words("logs --follow" + to(1))};

  const ProgramResult left = starling(work_, "leave" + to(2));
  EXPECT_EQ(left.code, 0) << left.err;
  EXPECT_EQ(left.out, "c has left\n");
  EXPECT_EQ(processes_[2]->wait().code, 0);
  processes_.pop_back();
  EXPECT_TRUE(wait_until([&] { return follow.out().find("has left") != std::string::npos; }))
      << follow.out();
  follow.signal(SIGINT);
  EXPECT_EQ(follow.wait().code, 0);
  EXPECT_EQ(starling(work_, "leave" + to(2)).code, 1);
}

/// The exit code is 1 if the nodes refuse a job, and 2 if `submit` does.
TEST_F(Nodes, RefuseImpossibleJobs) {
  work_.write("job.toml", "checkpoint = \"nowhere/c\"\n");
  for (const auto& [flags, code, error] : {
           std::tuple{"--mode peer --barrier bsp", 2, "--barrier: barrier bsp needs to see every"},
           {"--until speed=0.9", 1, "until: the model has no metric 'speed'"},
           {"--until accuracy=0.9 --eval-every 0", 2, "until: has no effect with eval-every 0"},
           {"--resume nothing", 1, "/nothing: no such file"},
           {"job.toml", 2, "job.toml:1: checkpoint: nowhere/c"},
       }) {
    const ProgramResult ran = starling(work_, "submit" + to(1) + "--data digits:n=300 " + flags);
    EXPECT_EQ(ran.code, code) << flags;
    EXPECT_NE(ran.err.find(error), std::string::npos) << ran.err;
  }
}

/// One copy of the parameters would fit into the memory of this machine, but three nodes on it need
/// more than one each.
TEST_F(Nodes, RefuseAJobThatExceedsTheirMemory) {
  const ProgramResult ran =
      starling(work_, "submit" + to(1) + "--data digits:n=300 --workers 4 --model " +
                          model_of_half_the_memory());
  EXPECT_EQ(ran.code, 1);
  for (const char* part : {"node at ", "model: mlp:784-", " parameters; one of 3 nodes needs ",
                           "of this machine's memory are free"})
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  // The nodes drop the job after the answer.
  EXPECT_TRUE(wait_until([&] { return status().find("job ") == std::string::npos; })) << status();
}

TEST_F(Nodes, SayThatTheirSeedNodeDoesNotAnswer) {
  Process lone{work_, program(), words("node --listen 127.0.0.1:* --join 127.0.0.1:1")};
  EXPECT_TRUE(wait_until([&] {
    return lone.err().find("no answer from tcp://127.0.0.1:1 yet: this node runs alone") !=
           std::string::npos;
  })) << lone.err();
  EXPECT_NE(lone.err().find("its name has the port, which is another one at each start"),
            std::string::npos);
  lone.signal(SIGKILL);
}

TEST(Node, SaysThatItCannotJoinItself) {
  const Folder folder;
  const std::string address = "127.0.0.1:" + std::to_string(10000 + ::getpid() % 5000);
  Process lone{folder, STARLING_PROGRAM,
               words("node --name lone --listen " + address + " --join " + address)};
  EXPECT_TRUE(wait_until([&] {
    return lone.err().find(
               "--join names this node's own address: it joins no other node, and is "
               "the first of its cluster\n") != std::string::npos;
  })) << lone.err();
  lone.signal(SIGKILL);
}

/// The path /proc/self/cwd makes each node read the file in its own working folder.
TEST_F(Nodes, NameTheNodeWhoseDataDiffer) {
  for (std::size_t node = 0; node < 3; ++node)
    folders_[node].write("x.csv", node == 1 ? "1,3,0\n2,1,1\n3,1,0\n" : "1,2,0\n2,1,1\n3,1,0\n");
  work_.write("x.csv", "1,2,0\n2,1,1\n3,1,0\n");
  const ProgramResult ran = starling(
      work_, "submit" + to(0) +
                 "--data csv:/proc/self/cwd/x.csv,label=last,task=class --model softmax --split 2");
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("each must run the same program and read the same data as " +
                         addresses_[0] + "; these do not: " + addresses_[1] + "\n"),
            std::string::npos)
      << ran.err;
}

TEST(Submit, NeedsKeysOrInsecureToReachAnotherMachine) {
  const Folder folder;
  for (const char* line : {"status --to 192.0.2.1:7400", "stop --to 192.0.2.1:7400",
                           "submit --to 192.0.2.1:7400 --data digits:n=300"}) {
    const ProgramResult ran = starling(folder, line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_NE(ran.err.find("--to: tcp://192.0.2.1:7400: nothing would be encrypted"),
              std::string::npos)
        << ran.err;
  }
}

TEST(Submit, SaysThatNothingListensBeforeItLoadsData) {
  const Folder folder;
  for (const char* line :
       {"status --to 127.0.0.1:1", "leave --to 127.0.0.1:1", "stop --to 127.0.0.1:1",
        "logs --to 127.0.0.1:1", "submit --to 127.0.0.1:1 --data digits:n=50"}) {
    const ProgramResult ran = starling(folder, line);
    EXPECT_EQ(ran.code, 1) << line;
    EXPECT_EQ(ran.err, "starling: no program listens at tcp://127.0.0.1:1\n") << line;
  }
}

/// None of them is given a name by the user, so that all choose the same one at first.
TEST_F(Nodes, RunEightJobsThatAreSubmittedAtOnce) {
  std::vector<std::unique_ptr<Process>> submits;
  for (int i = 0; i < 8; ++i)
    submits.push_back(std::make_unique<Process>(work_, program(),
                                                job_of_three(1, "--steps 30 --threads 1 --quiet")));
  for (const auto& submit : submits) {
    const ProgramResult ended = submit->wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
  const auto jobs = nlohmann::json::parse(starling(work_, "jobs --json" + to(0)).out)["jobs"];
  std::set<std::string> names;
  for (const auto& job : jobs) names.insert(job["name"].get<std::string>());
  EXPECT_EQ(jobs.size(), 8U) << jobs;
  EXPECT_EQ(names.size(), 8U) << jobs;
}

}  // namespace
}  // namespace starling::program
