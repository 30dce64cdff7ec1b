// Errors in command lines, the command `help`, `launch --stop`, and how jobs are named and chosen.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

/// A command line with a mistake, and a part of the error message.
struct BadLine {
  const char* name;
  const char* line;
  const char* error;
};

void PrintTo(const BadLine& bad, std::ostream* out) { *out << bad.line; }

class BadCommandLine : public testing::TestWithParam<BadLine> {};

TEST_P(BadCommandLine, IsRefusedWithTheValidInput) {
  const Folder folder;
  folder.write("named.toml", "name = \"two words\"\n");
  folder.write("number.toml", "name = 7\n");
  folder.write("flow.toml", "flow = \"sort\"\n");
  const ProgramResult ran = starling(folder, GetParam().line);
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_EQ(ran.out, "");
  EXPECT_NE(ran.err.find(GetParam().error), std::string::npos) << ran.err;
}

constexpr const char* invalid_name =
    "is not a valid job name; valid: letters, digits, '-', '_' and '.'";

INSTANTIATE_TEST_SUITE_P(
    Of, BadCommandLine,
    testing::Values(
        BadLine{
            "StrayBefore", "foo train --data digits:n=50",
            "'foo' before 'train' is not a command; valid: starling train ..., `starling help`"},
        BadLine{"StrayBeforeKeys", "foo keys show", "'foo' before 'keys' is not a command"},
        BadLine{"FlagBefore", "--workers train", "'--workers' before 'train' is not a command"},
        BadLine{"StrayBehind", "status a b --to 127.0.0.1:1", "'b' is one argument too many"},
        BadLine{"HelpOfNothing", "help trian", "unknown command 'trian'; did you mean 'train'?"},
        BadLine{"HelpOfNoKeys", "help keys nod", "unknown command 'nod'; did you mean 'node'?"},
        BadLine{"HelpOfTwo", "help train submit",
                "'submit' is one argument too many; valid: starling help train"},
        BadLine{"NameWithSlash", "train --name a/b --data digits:n=50",
                "--name: 'a/b' is not a valid job name"},
        BadLine{"NameWithDotFirst", "submit --to 127.0.0.1:1 --name .a", invalid_name},
        BadLine{"NameEmpty", "train --name '' --data digits:n=50",
                "--name: '' is not a valid job name"},
        BadLine{"NameMissing", "submit --to 127.0.0.1:1 --name", "--name: needs a value"},
        BadLine{"FlowUnknown", "submit --to 127.0.0.1:1 --flow wordcuont a",
                "unknown flow 'wordcuont'; did you mean 'wordcount'? valid: wordcount"},
        BadLine{"FlowMissing", "submit --to 127.0.0.1:1 --flow", "--flow: needs a value"},
        BadLine{"FlowEmpty", "submit --flow= --to 127.0.0.1:1", "unknown flow ''"},
        BadLine{"FlowWithoutFiles", "submit --flow sort --to 127.0.0.1:1",
                "sort: no file to read was given; valid: --input FILE"},
        BadLine{"FlowWithoutCluster", "submit a --flow=sort", "--to: is missing: the address"},
        BadLine{
            "FlowWithFlagOfTraining", "submit --flow sort --steps 3 a --to 127.0.0.1:1",
            "unknown flag '--steps'; did you mean '--keys'? `starling submit --flow sort --help` "
            "lists what is valid"},
        BadLine{"FlowWithBadOption", "submit --flow kmeans --k 0 a --to 127.0.0.1:1",
                "kmeans: k=0 must be a whole number >= 1"},
        BadLine{"FlowWithManyMembers", "submit --flow sort --workers 129 a --to 127.0.0.1:1",
                "--workers: "},
        BadLine{"FlowWithManyThreads", "submit --flow sort --threads 33 a --to 127.0.0.1:1",
                "--threads: "},
        BadLine{"FlowWithBadName", "submit --flow sort --name .a a --to 127.0.0.1:1", invalid_name},
        BadLine{"FlowWithShortWait", "submit --flow sort --wait-for-nodes 1 a --to 127.0.0.1:1",
                "--wait-for-nodes: '1' must be seconds"},
        BadLine{"FlowWithOldOutput", "submit --flow sort a --output named.toml --to 127.0.0.1:1",
                "--output: named.toml: exists already; valid: the name of a new folder"},
        BadLine{"FlowInAFile", "submit flow.toml --to 127.0.0.1:1",
                "flow.toml:1: unknown key 'flow'"},
        BadLine{"NameLong",
                "train --name "
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "up to 64"},
        BadLine{"NameInAFile", "train named.toml",
                "named.toml:1: name: 'two words' is not a valid job name"},
        BadLine{"NameNoText", "train number.toml", "number.toml:1: name"},
        BadLine{"JobTwice", "stop a --job b --to 127.0.0.1:1", "JOB: is given twice; valid: once"},
        BadLine{"JobEmpty", "stop '' --to 127.0.0.1:1",
                "JOB: is empty; `starling stop --help` lists what is valid"},
        BadLine{"SubmittedJobEmpty", "submit '' --to 127.0.0.1:1", "JOB: is empty; "},
        BadLine{"JobFlagEmpty", "stop --job '' --to 127.0.0.1:1", "--job: is empty; valid: "},
        BadLine{"JobsNowhere", "jobs", "--to: is missing"},
        BadLine{"JobsFlag", "jobs --jsn --to 127.0.0.1:1", "did you mean '--json'?"},
        BadLine{"StopOfNothingLaunched", "launch --stop", "--hosts: is missing"}),
    [](const auto& tested) { return std::string{tested.param.name}; });

TEST(Help, PrintsTheSameAsTheFlagHelp) {
  const Folder folder;
  const ProgramResult all = starling(folder, "help");
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.out, starling(folder, "--help").out);
  for (const std::string command : {"train", "status", "jobs", "keys", "keys node"}) {
    const ProgramResult ran = starling(folder, "help " + command);
    EXPECT_EQ(ran.code, 0) << command;
    EXPECT_EQ(ran.out, starling(folder, command + " --help").out) << command;
    EXPECT_NE(ran.out.find("Usage"), std::string::npos) << ran.out;
  }
  EXPECT_NE(starling(folder, "help stop").out.find("JOB"), std::string::npos);
}

TEST(FlagTo, RefusesANodeThatTheKeyFileDoesNotKnow) {
  const Folder folder;
  for (const char* line : {"keys init-cluster", "keys node a", "keys node laptop --role client"})
    ASSERT_EQ(starling(folder, line).code, 0) << line;
  const ProgramResult ran = starling(folder, "leave --to d@127.0.0.1:1 --keys laptop.key");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--to: the key file knows no node 'd'; valid: one of a; a key file "
                         "knows only the nodes whose keys were issued before it: to reach a later "
                         "one, issue this key anew, by `starling keys node laptop`"),
            std::string::npos)
      << ran.err;
}

TEST(LaunchStop, EndsOnlyTheNodesThatLaunchStarted) {
  const Folder folder;
  folder.write("ssh.sh", "#!/bin/sh\nexec sh -c \"$2\"\n");
  ASSERT_EQ(::chmod((folder.path() / "ssh.sh").c_str(), 0755), 0);
  const std::string port = std::to_string(15000 + ::getpid() % 5000);
  folder.write("hosts", "127.0.0.1:" + port + " one\n");
  const auto launch = [&](const std::string& flags) {
    return starling(folder, "launch --hosts hosts --ssh ./ssh.sh " + flags);
  };
  const ProgramResult never_started = launch("--stop");
  EXPECT_EQ(never_started.code, 1);
  EXPECT_NE(
      never_started.err.find("was not started by `launch`: there is no starling-one.pid there"),
      std::string::npos)
      << never_started.err;
  ASSERT_EQ(launch("--program " STARLING_PROGRAM).code, 0);
  // A node that runs is left alone, and the hosts after it get theirs.
  const ProgramResult again = launch("--program " STARLING_PROGRAM);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, "one runs already at 127.0.0.1:" + port + "\n");
  const ProgramResult stopped = launch("--stop");
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "one at 127.0.0.1:" + port + " has ended\n");
  EXPECT_EQ(starling(folder, "status --to 127.0.0.1:" + port).code, 1);
  EXPECT_EQ(launch("--stop").code, 1);
  // `launch --stop` does not end another process, which has got the node's process number.
  folder.write("starling-one.pid", std::to_string(::getpid()) + "\n");
  const ProgramResult other = launch("--stop");
  EXPECT_EQ(other.code, 1) << other.out;
  EXPECT_NE(other.err.find("one at 127.0.0.1:" + port +
                           ": the process of starling-one.pid there is not this node"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(folder.read("starling-one.pid"), std::to_string(::getpid()) + "\n");
  // No process has a number that high.
  folder.write("starling-one.pid", "99999999\n");
  const ProgramResult already_ended = launch("--stop");
  EXPECT_EQ(already_ended.code, 0) << already_ended.err;
  EXPECT_EQ(already_ended.out, "one at 127.0.0.1:" + port + " had ended before\n");
  EXPECT_EQ(already_ended.err, "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "starling-one.pid"));
}

/// Without its pid file, `launch --stop` could not end the node.
TEST(LaunchPid, IsWrittenOrTheNodeEnds) {
  const Folder folder;
  folder.write("ssh.sh", "#!/bin/sh\nexec sh -c \"$2\"\n");
  ASSERT_EQ(::chmod((folder.path() / "ssh.sh").c_str(), 0755), 0);
  const std::string address = "127.0.0.1:" + std::to_string(20000 + ::getpid() % 5000);
  folder.write("hosts", address + " one\n");
  const auto launch = [&](const std::string& flags) {
    return starling(folder, "launch --hosts hosts --ssh ./ssh.sh --program " STARLING_PROGRAM
                            " --log NAME.txt --pid " +
                                flags);
  };
  const ProgramResult refused = launch("gone/NAME");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("gone/one"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("one at " + address + ": not started"), std::string::npos)
      << refused.err;
  EXPECT_NE(folder.read("one.txt").find("node one at tcp://" + address), std::string::npos);
  EXPECT_TRUE(wait_until([&] { return starling(folder, "status --to " + address).code != 0; }));
  ASSERT_EQ(launch("NAME.number").code, 0);
  EXPECT_TRUE(folder.has("one.number"));
  EXPECT_EQ(launch("NAME.number --stop").out, "one at " + address + " has ended\n");
}

/// Two jobs that run until they are stopped.
class TwoJobs : public Nodes {
 protected:
  void SetUp() override {
    Nodes::SetUp();
    for (const char* name : {"run-one", "run-two"}) {
      const ProgramResult submitted = run(
          work_, program(), job_of_three(0, std::string{"--steps 100000 --detach --name "} + name));
      ASSERT_EQ(submitted.code, 0) << submitted.err;
      EXPECT_EQ(submitted.out, std::string{"job "} + name + " begins\n");
    }
  }
  void expect_refusal(const std::string& line, const std::string& error) {
    const ProgramResult ran = starling(work_, line + to(1));
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_NE(ran.err.find(error), std::string::npos) << line << "\n" << ran.err;
  }
};

TEST_F(TwoJobs, AreChosenByNamePrefixOrNumber) {
  const std::string description = "softmax on digits:n=1000, peer, pssp:s=4,beta=2";
  const std::string both = "run-one (" + description + "), run-two (" + description + ")";
  expect_refusal("stop", "JOB: there are several jobs, and none is named; valid: ");
  for (const char* command : {"stop", "attach", "status", "jobs"}) {
    expect_refusal(std::string{command} + " run",
                   "JOB: 'run' matches more than one job; valid: one of ");
    expect_refusal(std::string{command} + " walk", "JOB: 'walk' is not a job here; valid: ");
  }
  expect_refusal("logs run", "JOB: 'run' matches more than one job; valid: one of ");
  expect_refusal("logs walk", "JOB: 'walk' is not a job here; valid: ");
  expect_refusal("stop --job walk", "--job: 'walk' is not a job here; valid: ");
  expect_refusal("submit --data digits:n=300 --name run-one",
                 "--name: 'run-one' is the name of a job that is running here (" + description +
                     "); valid: another name, or first `starling stop --drop run-one`, which drops "
                     "the job's model or result");

  // Chooses a job by the beginning of its name, and by its number.
  const auto json = nlohmann::json::parse(starling(work_, "status run-t --json" + to(2)).out);
  ASSERT_EQ(json["jobs"].size(), 1U) << json;
  EXPECT_EQ(json["jobs"][0]["name"], "run-two");
  EXPECT_EQ(json["jobs"][0]["state"], "running");
  const std::string number = json["jobs"][0]["job"];
  const ProgramResult stopped = starling(work_, "stop --drop " + number + to(0));
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "job run-two: dropped\n");
  EXPECT_EQ(starling(work_, "stop run" + to(0)).code, 0);
  const ProgramResult ran = starling(work_, "attach run-o --json --save m" + to(2));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["end"], "stopped") << ran.out;

  // Ended jobs stay listed, and their names may be used again.
  const auto ended = nlohmann::json::parse(starling(work_, "jobs --json" + to(1)).out);
  ASSERT_EQ(ended["jobs"].size(), 2U) << ended;
  EXPECT_EQ(ended["jobs"][0]["name"], "run-one");
  for (const auto& job : ended["jobs"]) EXPECT_EQ(job["state"], "stopped") << job;
  const ProgramResult again =
      run(work_, program(), job_of_three(0, "--steps 3 --quiet --json --name run-one"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["name"], "run-one");

  // A name means all jobs that have had it, and a number one job.
  const auto count_jobs = [&](const std::string& job) {
    return nlohmann::json::parse(starling(work_, "jobs " + job + " --json" + to(1)).out)["jobs"]
        .size();
  };
  EXPECT_EQ(count_jobs("run-one"), 2U);
  EXPECT_EQ(count_jobs(ended["jobs"][0]["job"]), 1U);
}

TEST_F(Nodes, NameAJobThatHasNoName) {
  for (const char* name : {"softmax-digits-1", "softmax-digits-2"}) {
    const ProgramResult ran = run(work_, program(), job_of_three(0, "--steps 3 --quiet --json"));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(nlohmann::json::parse(ran.out)["name"], name) << ran.out;
  }
}

/// The working folders of the nodes differ from that of `submit`.
TEST_F(Nodes, ReadAFileWhosePathIsRelativeToSubmit) {
  work_.write("x.csv", "1,2,0\n2,1,1\n3,1,0\n1,3,1\n");
  const ProgramResult ran =
      starling(work_, "submit" + to(0) +
                          "--data csv:x.csv,label=last,task=class --model softmax "
                          "--split 3 --workers 2 --quiet --steps 3 --json");
  EXPECT_EQ(ran.code, 0) << ran.err;
}

}  // namespace
}  // namespace starling::program
