/// Jobs whose data are pipes, devices or sources that hang. They neither block a node nor keep it
/// from ending.
#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

using Clock = std::chrono::steady_clock;

class Readers : public Nodes {
 protected:
  /// Sends SIGTERM to a node, and expects it to end within the guaranteed 3 s.
  void expect_end_in_time(std::size_t node) {
    const auto asked_at = Clock::now();
    processes_[node]->signal(SIGTERM);
    EXPECT_EQ(processes_[node]->wait().code, 0);
    EXPECT_LT(Clock::now() - asked_at, std::chrono::seconds{3});
    processes_[node].reset();
  }
};

/// The path /proc/self/cwd makes each process read the file in its own working folder. The file is
/// a pipe for one node, and a regular file for `submit` and the other nodes.
TEST_F(Readers, RefusePipesAndTrainTheNextJob) {
  const std::string rows = "1,2,0\n2,1,1\n3,1,0\n4,2,1\n";
  work_.write("pipe", rows);
  work_.write("libsvm", "0 1:1\n1 2:1\n0 1:2\n1 2:2\n");
  for (Folder* folder : {&work_, &folders_[0], &folders_[1], &folders_[2]})
    folder->write("x.csv", rows);
  for (const char* name : {"pipe", "libsvm"})
    ASSERT_EQ(::mkfifo((folders_[0].path() / name).c_str(), 0600), 0);
  for (std::size_t node = 1; node < 3; ++node) {
    folders_[node].write("pipe", rows);
    folders_[node].write("libsvm", work_.read("libsvm"));
  }
  const std::string job = "submit" + to(1) + "--workers 3 --epochs 1 --quiet --barrier asp ";
  for (const char* data :
       {"csv:/proc/self/cwd/pipe", "csv:/proc/self/cwd/pipe", "csv:/proc/self/cwd/pipe",
        "libsvm:/proc/self/cwd/libsvm", "libsvm:/proc/self/cwd/libsvm"}) {
    const ProgramResult ran = starling(work_, job + "--data " + data);
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.err.find(": is a pipe; valid: a regular file"), std::string::npos) << ran.err;
  }
  const ProgramResult good = starling(work_, job + "--data csv:/proc/self/cwd/x.csv");
  EXPECT_EQ(good.code, 0) << good.err;
  expect_end_in_time(0);
}

TEST_F(Readers, RefusePipes) {
  ASSERT_EQ(::mkfifo((work_.path() / "pipe").c_str(), 0600), 0);
  // `submit` itself reads the first two files, nodes read the others.
  for (const auto& [flags, code] : {std::pair{"--model net:pipe", 2},
                                    {"--delay trace:pipe", 2},
                                    {"--data csv:pipe", 1},
                                    {"--data idx:pipe,pipe", 1},
                                    {"--data safetensors:pipe", 1},
                                    {"--data cifar10:/dev/zero", 1},
                                    {"--resume /dev/ptmx", 1}}) {
    const ProgramResult ran = starling(work_, "submit" + to(1) + "--workers 3 --steps 5 " + flags);
    EXPECT_EQ(ran.code, code) << flags;
    EXPECT_NE(ran.err.find("; valid: a regular file\n"), std::string::npos) << ran.err;
  }
}

/// Nodes that run own_program.cpp, whose source `hanging` and model `slow` hang if there is a file
/// `hang` in the node's folder.
class HangingReaders : public Readers {
 protected:
  const char* program() override { return STARLING_OWN_PROGRAM; }
  const std::string job_ = " --model slow --workers 3 --epochs 1";
};

/// A user's data source never returns, as if it read from a network file system that is gone.
TEST_F(HangingReaders, DoNotKeepANodeFromEnding) {
  for (const Folder& folder : folders_) folder.write("hang", "");
  Process submit{work_, program(), words("submit" + to(0) + "--data hanging" + job_)};
  EXPECT_TRUE(wait_until([&] { return folders_[0].has("hanging") && folders_[1].has("hanging"); }));
  expect_end_in_time(0);
  expect_end_in_time(1);
  submit.signal(SIGKILL);
}

/// The model hangs while it initialises its parameters, on the thread of the node's event loop.
TEST_F(HangingReaders, OfAModelsFirstValuesDoNotKeepANodeFromEnding) {
  folders_[0].write("hang", "");
  Process submit{work_, program(),
                 words("submit" + to(0) + "--data linear:d=2,n=100,noise=0" + job_)};
  EXPECT_TRUE(wait_until([&] { return folders_[0].has("hanging"); })) << submit.err();
  expect_end_in_time(0);
  submit.signal(SIGKILL);
}

/// Node d joins late, and still prepares the job that runs on the others.
TEST_F(HangingReaders, DoNotKeepAJobFromBeingStopped) {
  const ProgramResult submitted =
      run(work_, program(),
          words("submit" + to(0) +
                "--data linear:d=2,n=200 --model slow --workers 3 --mode peer --barrier asp "
                "--steps 100000 --delay exp:20ms --detach"));
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const Folder late;
  late.write("hang", "");
  Process node{late, program(),
               words("node --listen 127.0.0.1:* --name d --join " + addresses_[0])};
  EXPECT_TRUE(wait_until([&] { return late.has("hanging"); })) << node.err();
  const ProgramResult stopped = run(work_, program(), words("stop" + to(0)));
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  node.signal(SIGKILL);
}

}  // namespace
}  // namespace starling::program
