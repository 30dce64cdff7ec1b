/// Sends SIGINT, SIGTERM and SIGHUP to the program.
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"
#include "tests/waiting.hpp"

namespace starling::program {
namespace {

/// Waits until the program has printed `words` on stderr.
void wait_for(const Process& process, const std::string& words) {
  ASSERT_TRUE(wait_until([&] { return process.err().find(words) != std::string::npos; }))
      << "stderr has no '" << words << "': " << process.err();
}

/// Waits until the program has printed a line of progress.
void wait_for_progress(const Process& process) { wait_for(process, "  steps "); }

/// Waits until the file exists and is not empty.
void wait_for_file(const Folder& folder, const std::string& name) {
  ASSERT_TRUE(wait_until([&] { return !folder.read(name).empty(); }))
      << "the program has not written " << name;
}

class Interrupt : public testing::TestWithParam<int> {};

TEST_P(Interrupt, StopsGracefullyAndSaves) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM,
                  words("train --data digits:n=300 --seconds 100 --save m --checkpoint c "
                        "--metrics x.jsonl --json")};
  wait_for(process, "updates/s");
  process.signal(GetParam());
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["end"], "interrupted");
  EXPECT_LT(json["wall_s"], 60.0);
  EXPECT_EQ(json["saved"], "m");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"c", "m", "x.jsonl"}));
  const ProgramResult evaluated = starling(folder, "evaluate m --json");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(nlohmann::json::parse(evaluated.out)["accuracy"], json["test_accuracy"]);
  const ProgramResult resumed =
      starling(folder, "train --data digits:n=300 --seconds 0.2 --resume c --quiet");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

INSTANTIATE_TEST_SUITE_P(Signals, Interrupt, testing::Values(SIGINT, SIGTERM, SIGHUP));

/// Libraries that are loaded with the program handle no signals: it dies by those that end it, and
/// leaves no file.
TEST(Crash, EndsTheProgramByItsSignal) {
  const Folder folder;
  const ProgramResult crashed =
      Process{folder,
              "/bin/sh",
              {"-c", "ulimit -c 0; " STARLING_PROGRAM
                     " train --data digits:n=300 --seconds 100 --quiet --metrics x & "
                     "until test -s x; do sleep 0.05; done; kill -ABRT $!; wait $!"}}
          .wait();
  EXPECT_EQ(crashed.code, 128 + SIGABRT) << crashed.err;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x"});
}

TEST(InterruptOnce, SaysWhatASecondSignalDoes) {
  for (const std::string quiet : {"", " --quiet"}) {
    const Folder folder;
    Process process{folder, STARLING_PROGRAM,
                    words("train --data digits:n=300 --seconds 100 --save m --metrics x" + quiet)};
    wait_for_file(folder, "x");
    process.signal(SIGINT);
    const ProgramResult ran = process.wait();
    EXPECT_EQ(ran.code, 130);
    EXPECT_EQ(ran.err.find("starling: stopping; again to end at once without saving\n") !=
                  std::string::npos,
              quiet.empty())
        << ran.err;
    if (!quiet.empty()) {
      EXPECT_EQ(ran.err, "");
    }
  }
}

/// A program may receive SIGHUP twice: from the system, and from its shell, which passes on its
/// own, perhaps late. A second SIGINT counts unless it comes within 100 ms.
TEST(HangUp, TwiceCountsAsOnce) {
  const Folder folder;
  // The step takes longer than the time between the signals.
  Process process{folder, STARLING_PROGRAM,
                  words("train --data digits:n=8000 --model mlp:784-512-512-10 --batch 8000 "
                        "--workers 1 --mode central --barrier asp --seconds 100 --eval-every 0 "
                        "--save m")};
  wait_for_progress(process);
  process.signal(SIGHUP);
  wait_for(process, "again to end at once");
  std::this_thread::sleep_for(std::chrono::milliseconds{200});
  process.signal(SIGHUP);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_TRUE(folder.has("m"));
}

TEST(HangUp, IsIgnoredIfItWasIgnoredBefore) {
  const Folder folder;
  Process process{folder,
                  "/bin/sh",
                  {"-c", "trap '' HUP; exec " STARLING_PROGRAM
                         " train --data digits:n=300 --seconds 2 --quiet --save m --metrics x"}};
  wait_for_file(folder, "x");
  process.signal(SIGHUP);
  EXPECT_EQ(process.wait().code, 0);
  EXPECT_TRUE(folder.has("m"));
}

TEST(InterruptWhileWaitingForANode, EndsAtOnceWithoutMentioningSaving) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic_address = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, generic_address, size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ASSERT_EQ(::getsockname(listener, generic_address, &size), 0);
  const Folder folder;
  Process process{folder, STARLING_PROGRAM,
                  words("status --to 127.0.0.1:" + std::to_string(ntohs(address.sin_port)))};
  const int connection = ::accept(listener, nullptr, nullptr);
  process.signal(SIGINT);
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.err, "\nstarling: interrupted\n");
  ::close(connection);
  ::close(listener);
}

TEST(InterruptWhileLoading, EndsAtOnceAndSaysThatNothingWasSaved) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM, words("train --data digits:n=400000 --save m")};
  wait_for(process, "loading digits:n=400000 ...");
  const auto interrupted_at = std::chrono::steady_clock::now();
  process.signal(SIGINT);
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "loading digits:n=400000 ...\nstarling: interrupted, nothing was saved\n");
  EXPECT_LT(std::chrono::steady_clock::now() - interrupted_at, std::chrono::seconds{10});
  EXPECT_TRUE(folder.names().empty());
}

TEST(InterruptWhileDelayed, StopsAtTheStepAndSaves) {
  const Folder folder;
  Process process{
      folder, STARLING_PROGRAM,
      words("train --data digits:n=300 --delay const:20h --straggler 1:1000000x --save m")};
  wait_for_progress(process);
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m"});
}

TEST(InterruptTwice, EndsAtOnce) {
  const Folder folder;
  // A step that takes some 10^12 operations keeps the job from stopping gracefully in time.
  Process process{folder, STARLING_PROGRAM,
                  words("train --data digits:n=8000 --model mlp:784-4096-4096-10 --batch 8000 "
                        "--workers 1 --mode central --barrier asp --save m")};
  wait_for_progress(process);
  process.signal(SIGINT);
  wait_for(process, "again to end at once");
  // A SIGINT that comes within 100 ms of the first one does not count.
  std::this_thread::sleep_for(std::chrono::milliseconds{200});
  const auto second_signal_at = std::chrono::steady_clock::now();
  process.signal(SIGINT);
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_TRUE(ran.err.ends_with("\nstarling: interrupted twice, ended at once\n")) << ran.err;
  EXPECT_LT(std::chrono::steady_clock::now() - second_signal_at, std::chrono::seconds{20});
  EXPECT_TRUE(folder.names().empty());
}

class InterruptTwiceAtOnce : public testing::TestWithParam<int> {};

TEST_P(InterruptTwiceAtOnce, StopsGracefullyLikeOneSignal) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM,
                  words("train --data digits:n=300 --delay const:20h --save m")};
  wait_for_progress(process);
  // timeout(1) signals the process and then its group.
  process.signal(GetParam());
  process.signal(GetParam());
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.err.find("interrupted twice"), std::string::npos) << ran.err;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m"});
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptTwiceAtOnce, testing::Values(SIGINT, SIGTERM));

/// timeout(1) sends SIGINT to the program and, some microseconds later, to the group of both.
TEST(InterruptByTimeout, StopsGracefullyAndSaves) {
  const Folder folder;
  Process process{folder,
                  "/bin/sh",
                  {"-c", "exec timeout -s INT 3 " STARLING_PROGRAM
                         " train --data digits:n=300 --seconds 100 --save m"}};
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.err.find("interrupted twice"), std::string::npos) << ran.err;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"m"}) << ran.err;
}

TEST(InterruptedSim, LeavesNoEmptyFolders) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM,
                  words("sim --workers 2000 --horizon 10h --plots plots")};
  wait_for(process, "simulating  ");
  ASSERT_TRUE(folder.has("plots"));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_TRUE(folder.names().empty());
}

TEST(InterruptedRepro, LeavesNoEmptyFolders) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM, words("repro psp --seeds 1000 --markdown page")};
  wait_for(process, "simulating  ");
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_TRUE(folder.names().empty());
}

TEST(InterruptedTrainingReport, LeavesNoEmptyFolders) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM,
                  words("repro psp-train --data digits:n=300 --model softmax --markdown page")};
  wait_for(process, "training  ");
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().code, 130);
  EXPECT_TRUE(folder.names().empty());
}

TEST(InterruptedTwin, DoesNotMentionSaving) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM,
                  words("twin --data digits:n=300 --delay exp:20ms --seconds 100")};
  wait_for(process, "updates/s");
  process.signal(SIGINT);
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_NE(ran.err.find("starling: stopping; again to end at once\n"), std::string::npos)
      << ran.err;
}

TEST(InterruptedChaos, SaysHowManyRunsItMade) {
  const Folder folder;
  Process process{folder, STARLING_PROGRAM, words("chaos --seeds 1..100000000 --json")};
  wait_for(process, " of 100000000 seeds (");
  process.signal(SIGINT);
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["seeds_asked"], 100000000);
  EXPECT_LT(json["seeds"], 100000000);
}

}  // namespace
}  // namespace starling::program
