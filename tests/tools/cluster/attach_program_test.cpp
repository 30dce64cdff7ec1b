/// Runs jobs that go on after their `submit` has ended, and `attach`, which follows such jobs.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

TEST_F(Nodes, KeepTheModelOfAJobWhoseSubmitWasKilledForAttach) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 300 --quiet")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  submit.signal(SIGKILL);
  // An `attach` without --save leaves the model on the nodes.
  const ProgramResult first_attach = starling(work_, "attach --json" + to(1));
  EXPECT_EQ(first_attach.code, 0) << first_attach.err;
  EXPECT_NE(
      first_attach.err.find("stays on its nodes: `starling attach softmax-digits-1 --save FILE`"),
      std::string::npos)
      << first_attach.err;
  std::this_thread::sleep_for(std::chrono::seconds{3});
  const ProgramResult ran = starling(work_, "attach --json --save m --checkpoint c" + to(0));
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["end"], "completed") << ran.out;
  EXPECT_EQ(json["updates"], 3 * 300) << ran.out;
  EXPECT_EQ(json["saved"], "m") << ran.out;
  // `wall_s` is the time that the job took, without the wait until `attach`.
  EXPECT_NEAR(json["wall_s"].get<double>(),
              nlohmann::json::parse(first_attach.out)["wall_s"].get<double>(), 1.0);
  EXPECT_EQ(starling(work_, "evaluate m").code, 0);
  EXPECT_EQ(starling(work_, "inspect c").code, 0);
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
}

TEST_F(Nodes, EvaluateTheModelOfAJobWhoseDataOnlyTheyHave) {
  // The name stands for another file in each program's working folder, and for none in `work_`.
  std::string rows = "size,colour,price\n";
  for (int row = 0; row < 40; ++row)
    rows += std::to_string(row) + (row % 2 == 0 ? ",red," : ",blue,") +
            std::to_string(3 * row + row % 2) + "\n";
  for (const Folder& folder : folders_) folder.write("rows.csv", rows);
  const std::string job =
      "submit --data csv:/proc/self/cwd/rows.csv --model linear --workers 3 --steps 60 "
      "--eval-every 20 --delay exp:5ms --metrics f --save m --checkpoint c --json" +
      to(0);
  const ProgramResult ran = starling(work_, job);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["train_samples"], 32) << ran.out;
  EXPECT_EQ(json["test_samples"], 8) << ran.out;
  EXPECT_NE(work_.read("f").find("\"test_mse\""), std::string::npos) << work_.read("f");
  // The file has the scaling and the categories of the nodes' data: the figures are the same there.
  const ProgramResult evaluated =
      starling(folders_[1], "evaluate --json " + (work_.path() / "m").string());
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const double test_mse = json["test_mse"];
  EXPECT_NEAR(nlohmann::json::parse(evaluated.out)["mse"], test_mse, 1e-6 * test_mse);
  // A job goes on from the checkpoint where the data are.
  const ProgramResult resumed = starling(
      folders_[1], "train --data csv:rows.csv --model linear --workers 3 --steps 80 --resume " +
                       (work_.path() / "c").string());
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST_F(Nodes, StopAJobAndSaveItsModelIfSubmitIsInterrupted) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 100000 --json --save m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  submit.signal(SIGINT);
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["end"], "interrupted") << ran.out;
  EXPECT_EQ(starling(other, "evaluate m").code, 0);
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
}

TEST_F(Nodes, GoOnIfAttachIsInterrupted) {
  const ProgramResult submitted =
      run(work_, program(), job_of_three(0, "--steps 100000 --detach --json"));
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const std::string job = nlohmann::json::parse(submitted.out)["job"];
  const std::string name = nlohmann::json::parse(submitted.out)["name"];
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  const Folder other;
  Process attach{other, STARLING_PROGRAM, words("attach --save m --job " + job + to(1))};
  EXPECT_TRUE(wait_until([&] { return attach.err().find("  waiting ") != std::string::npos; }));
  attach.signal(SIGINT);
  const ProgramResult interrupted = attach.wait();
  EXPECT_EQ(interrupted.code, 130) << interrupted.err;
  EXPECT_NE(interrupted.err.find("job " + name + " goes on; `starling attach " + name +
                                 "` follows it again"),
            std::string::npos)
      << interrupted.err;
  EXPECT_NE(status().find("running"), std::string::npos) << status();
  EXPECT_EQ(starling(work_, "stop" + to(2)).code, 0);
  const ProgramResult ran = starling(work_, "attach --json --save m" + to(2));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["end"], "stopped") << ran.out;
  EXPECT_EQ(starling(work_, "evaluate m").code, 0);
}

TEST_F(Nodes, HaveTheirStepsRecordedForAdvice) {
  const ProgramResult none = starling(work_, "advise --from " + addresses_.at(0));
  EXPECT_NE(none.code, 0);
  ASSERT_EQ(run(work_, program(), job_of_three(0, "--steps 100000 --detach")).code, 0);
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  const std::string barriers = " --barrier bsp --barrier asp";
  const ProgramResult ran =
      starling(work_, "advise --record 2s --steps 100 --seeds 1 --json --quiet" + barriers +
                          " --from " + addresses_.at(1));
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["file"], "job softmax-digits-1") << ran.out;
  EXPECT_EQ(json["workers"].size(), 3U) << ran.out;
  EXPECT_NE(status().find("running"), std::string::npos) << "the job goes on";
  EXPECT_EQ(starling(work_, "stop --drop" + to(2)).code, 0);
  ASSERT_EQ(run(work_, program(),
                job_of_three(0, "--mode central --barrier absp --steps 100000 --detach"))
                .code,
            0);
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  const ProgramResult refused = starling(work_, "advise --from " + addresses_.at(1));
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_NE(refused.err.find("has barrier absp, which cuts the steps"), std::string::npos)
      << refused.err;
}

/// The first worker waits for the second one, whose step takes 10 s.
TEST_F(Nodes, ShowAShareOfWaitingBelowOneIfAttachComesLate) {
  ASSERT_EQ(starling(work_,
                     "submit --detach --data digits:n=300 --model softmax --workers 2 "
                     "--mode central --barrier bsp --delay const:500ms --straggler 1:20x "
                     "--steps 100" +
                         to(0))
                .code,
            0);
  ASSERT_TRUE(wait_until([&] {
    const auto json = nlohmann::json::parse(starling(work_, "status --json" + to(1)).out);
    return !json["jobs"].empty() && json["jobs"][0].value("updates", 0) > 0;
  })) << status();
  std::this_thread::sleep_for(std::chrono::seconds{2});
  const Folder other;
  Process attach{other, STARLING_PROGRAM, words("attach --quiet --metrics m" + to(1))};
  EXPECT_TRUE(wait_until([&] {
    return other.has("m") && other.read("m").find("waiting_share") != std::string::npos;
  }));
  attach.signal(SIGINT);
  (void)attach.wait();
  std::istringstream lines{other.read("m")};
  for (std::string line; std::getline(lines, line);) {
    const double share = nlohmann::json::parse(line).value("waiting_share", 0.0);
    EXPECT_LE(share, 1) << line;
  }
}

TEST_F(Nodes, EndADetachedJobWhenItsTimeIsUp) {
  const ProgramResult submitted = run(work_, program(), job_of_three(0, "--seconds 1 --detach"));
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_EQ(submitted.out.find("job "), 0U) << submitted.out;
  EXPECT_TRUE(wait_until([&] {
    const auto status_json = nlohmann::json::parse(starling(work_, "status --json" + to(1)).out);
    return !status_json["jobs"].empty() &&
           std::ranges::all_of(status_json["jobs"][0]["members"],
                               [](const auto& member) { return member["state"] == "done"; });
  })) << status();
  const ProgramResult stopped = starling(work_, "stop" + to(2));
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_NE(stopped.out.find(": is done already; "), std::string::npos) << stopped.out;
  EXPECT_NE(status().find("\n  done, "), std::string::npos) << status();
  const ProgramResult ran = starling(work_, "attach --json --save m" + to(1));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["end"], "reached") << ran.out;
}

TEST_F(Nodes, KeepAModelThatCouldNotBeSaved) {
  const Folder other;
  std::filesystem::create_directory(other.path() / "gone");
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 300 --save gone/m")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  std::filesystem::remove_all(other.path() / "gone");
  const ProgramResult ran = submit.wait();
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_NE(ran.err.find("stays on its nodes"), std::string::npos) << ran.err;
  EXPECT_EQ(starling(work_, "attach --save m" + to(0)).code, 0);
  EXPECT_EQ(starling(work_, "evaluate m").code, 0);
}

/// Node d joins after the job has made its steps, so it does not run the job.
TEST_F(Nodes, FollowAResumedJobThatTheNodeOfAttachLacks) {
  const std::string flags = "--data digits:n=1000 --model softmax --workers 3 --quiet ";
  const ProgramResult first =
      starling(work_, "submit" + to(0) + flags + "--steps 20 --checkpoint c");
  ASSERT_EQ(first.code, 0) << first.err;
  const ProgramResult submitted =
      starling(work_, "submit" + to(0) + flags + "--steps 40 --resume c --detach");
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  ASSERT_TRUE(wait_until([&] {
    const auto json = nlohmann::json::parse(starling(work_, "status --json" + to(1)).out);
    return !json["jobs"].empty() && json["jobs"][0]["state"] == "done";
  })) << status();
  const Folder late;
  Process node{late, STARLING_PROGRAM,
               words("node --listen 127.0.0.1:* --name d --join " + addresses_[0])};
  const std::string at_d = " --to " + address_of(node, "d") + " ";
  EXPECT_TRUE(wait_until(
      [&] { return starling(work_, "status" + at_d).out.find("c  tcp") != std::string::npos; }));
  const ProgramResult ran = starling(work_, "attach --json --save m" + at_d);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out, nullptr, false)["updates"], 3 * 40) << ran.out;
  node.signal(SIGKILL);
}

TEST_F(Nodes, AppendToTheMetricsOfAJobThatResumes) {
  const std::string flags =
      "submit --data digits:n=1000 --model softmax --workers 3 --metrics f --quiet" + to(0);
  work_.write("f", "of an earlier job\n");
  ASSERT_EQ(starling(work_, flags + "--steps 20 --checkpoint c").code, 0);
  const auto lines = [&] {
    std::ifstream file{work_.path() / "f"};
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  };
  const auto before = lines();
  ASSERT_FALSE(before.empty());
  EXPECT_NE(before[0], "of an earlier job") << "only a job that resumes appends";
  const ProgramResult resumed = starling(work_, flags + "--steps 40 --resume c");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const auto after = lines();
  ASSERT_GT(after.size(), before.size());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
}

TEST_F(Nodes, DropAJobWhoseSubmitWasKilled) {
  const Folder other;
  Process submit{other, STARLING_PROGRAM, job_of_three(2, "--steps 100000 --quiet")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  submit.signal(SIGKILL);
  EXPECT_EQ(starling(work_, "stop --drop" + to(0)).code, 0);
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
}

TEST_F(Nodes, SayThatTheModelOfAJobWasDropped) {
  const std::string job = "--data digits:n=500 --model softmax --workers 3 --steps 5 --name j";
  ASSERT_EQ(starling(work_, "submit --detach " + job + to(0)).code, 0);
  ASSERT_TRUE(wait_until([&] { return first_job().value("state", "") == "done"; })) << status();
  EXPECT_EQ(starling(work_, "stop --drop j" + to(0)).code, 0);
  const ProgramResult attached = starling(work_, "attach j --save m" + to(1));
  EXPECT_EQ(attached.code, 2);
  EXPECT_NE(attached.err.find("'j' has ended: done (dropped by `stop --drop`);"), std::string::npos)
      << attached.err;
}

/// The path leads each process to its own folder. The folder of `submit` has the net's file, but no
/// data.
TEST_F(Nodes, RunADetachedJobWhoseDataSubmitDoesNotHave) {
  const std::string command =
      "submit --detach --data csv:/proc/self/cwd/rows.csv,label=y --model net:layers.toml "
      "--workers 3 --name";
  std::ofstream{work_.path() / "layers.toml"} << "layers = [\"dense 4\", \"relu\", \"dense 2\"]\n";
  const ProgramResult missing = starling(work_, command + " m" + to(0));
  EXPECT_EQ(missing.code, 1) << missing.out;
  EXPECT_NE(missing.err.find("node at "), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find("--data: /proc/self/cwd/rows.csv: no such file"), std::string::npos)
      << missing.err;
  for (const Folder& folder : folders_) {
    std::ofstream rows{folder.path() / "rows.csv"};
    rows << "a,b,y\n";
    for (int i = 0; i < 60; ++i)
      rows << i << ',' << i * i << ',' << (i % 2 == 0 ? "n" : "y") << '\n';
  }
  const ProgramResult ran = starling(work_, command + " j" + to(1));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "job j begins\n");
  const auto job = [&] {
    return nlohmann::json::parse(starling(work_, "status --json" + to(2)).out)["jobs"].at(0);
  };
  EXPECT_TRUE(wait_until([&] { return job()["state"] == "done"; })) << status();
  EXPECT_GT(job()["updates"], 0) << status();
}

TEST_F(Nodes, RefuseSettingsThatADetachedJobCannotHave) {
  const auto refusal = [&](const std::string& line) {
    const ProgramResult ran = starling(work_, line);
    EXPECT_EQ(ran.code, 2) << line;
    return ran.err;
  };
  EXPECT_NE(refusal("attach" + to(0)).find("no job runs on these nodes"), std::string::npos);
  for (const char* command : {"attach", "status", "stop"})
    EXPECT_NE(refusal(command + std::string{" gone"} + to(0))
                  .find("JOB: 'gone': no job runs on these nodes"),
              std::string::npos)
        << command;
  EXPECT_NE(refusal("attach --steps 9" + to(0)).find("--steps"), std::string::npos);
  EXPECT_NE(refusal("submit --detach --until accuracy=0.9 --data digits:n=300" + to(0))
                .find("--detach: no program sees when --until is reached; valid beside it: epochs, "
                      "steps or seconds"),
            std::string::npos);
  EXPECT_EQ(status().find("job "), std::string::npos) << status();
  const ProgramResult submitted =
      run(work_, program(), job_of_three(0, "--steps 3 --detach --save m"));
  EXPECT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_NE(submitted.err.find("--save: has no effect with --detach; `starling attach` takes it"),
            std::string::npos)
      << submitted.err;
  EXPECT_NE(refusal("attach --job x" + to(0)).find("--job: 'x' is not a job here"),
            std::string::npos);
}

}  // namespace
}  // namespace starling::program
