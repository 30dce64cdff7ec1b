/// Runs the program on a full disk: it reports an error, exits with 1 and leaves no partial file.
#include <sys/mount.h>

#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// A folder with a file system of 64 KiB in `disk`.
class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.path() / "disk");
    is_mounted_ = ::mount("none", disk().c_str(), "tmpfs", 0, "size=64k") == 0;
    if (!is_mounted_) GTEST_SKIP() << "mounting a small file system needs root";
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(disk().c_str(), MNT_DETACH);
  }
  [[nodiscard]] std::string disk() const { return (folder_.path() / "disk").string(); }
  /// Returns the names of the files on the small file system.
  [[nodiscard]] std::vector<std::string> on_disk() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{disk()})
      names.push_back(entry.path().filename().string());
    return names;
  }

  Folder folder_;
  bool is_mounted_ = false;
};

TEST_F(FullDisk, LeavesNoPartOfAModel) {
  const ProgramResult ran =
      starling(folder_, "train --data digits:n=300 --epochs 1 --quiet --save disk/m");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("disk/m: cannot be written: No space left on device"), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("disk/m: was not written, the model could not be saved"),
            std::string::npos)
      << ran.err;
  EXPECT_TRUE(on_disk().empty()) << on_disk()[0];
}

TEST_F(FullDisk, KeepsTheOldModel) {
  ASSERT_EQ(starling(folder_, std::string{small_job} + "--epochs 1 --save disk/m").code, 0);
  const std::string old = folder_.read("disk/m");
  const ProgramResult ran =
      starling(folder_, "train --data digits:n=300 --epochs 1 --quiet --save disk/m");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("disk/m: is as it was, the model could not be saved"), std::string::npos)
      << ran.err;
  EXPECT_EQ(folder_.read("disk/m"), old);
  EXPECT_EQ(on_disk(), std::vector<std::string>{"m"});
}

TEST_F(FullDisk, LeavesNoPartOfAKeyAndIssuesNothing) {
  ASSERT_EQ(starling(folder_, "keys init-cluster").code, 0);
  ASSERT_EQ(starling(folder_, "keys node first").code, 0);
  const std::string issued = folder_.read("cluster/certificates");
  folder_.write("disk/other", std::string(65536, 'x'));
  const ProgramResult ran = starling(folder_, "keys node second --out disk/second.key");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--out: disk/second.key: cannot be written: No space left on device"),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(on_disk(), std::vector<std::string>{"other"});
  EXPECT_EQ(folder_.read("cluster/certificates"), issued);
}

TEST_F(FullDisk, StopsAJobThatCannotWriteItsCheckpoint) {
  const ProgramResult ran = starling(folder_,
                                     "train --data digits:n=300 --seconds 100 --quiet "
                                     "--checkpoint disk/c --checkpoint-every 5 --json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("disk/c: cannot be written: No space left"), std::string::npos) << ran.err;
  EXPECT_LT(nlohmann::json::parse(ran.out)["wall_s"], 60.0);
  EXPECT_TRUE(on_disk().empty());
}

TEST_F(FullDisk, StopsAJobThatCannotWriteItsMetricsAndKeepsWholeLines) {
  folder_.write("disk/filler", std::string(56 << 10U, 'x'));  // leaves space for some lines
  const ProgramResult ran = starling(folder_,
                                     "train --data digits:n=300 --seconds 100 --quiet "
                                     "--model softmax --eval-every 1 --metrics disk/m.jsonl "
                                     "--save model");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("disk/m.jsonl: cannot be written: No space left"), std::string::npos);
  const std::string content = folder_.read("disk/m.jsonl");
  ASSERT_FALSE(content.empty());
  EXPECT_EQ(content.back(), '\n');
  EXPECT_TRUE(folder_.has("model")) << "the trained model is saved";
}

TEST_F(FullDisk, LeavesNoPartOfPredictions) {
  ASSERT_EQ(starling(folder_, std::string{small_job} + "--epochs 1 --save m").code, 0);
  const ProgramResult ran = starling(folder_, "predict m --data digits:n=20000 --out disk/p.csv");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("disk/p.csv: cannot be written: No space left"), std::string::npos);
  EXPECT_TRUE(on_disk().empty());
}

TEST_F(FullDisk, FailsASimulationThatCannotWriteItsPlotsEvenWithoutGnuplot) {
  folder_.write("disk/other", std::string(65536, 'x'));
  Process program{folder_, "/usr/bin/env",
                  words(std::string{"PATH=/nowhere "} + STARLING_PROGRAM +
                        " sim --workers 40 --horizon 20s --quiet --barrier asp --plots disk")};
  const ProgramResult ran = program.wait();
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("cannot be written: No space left on device"), std::string::npos)
      << ran.err;
}

TEST(Stdout, ReportsAnErrorIfItIsFull) {
  const Folder folder;
  const ProgramResult ran =
      run(folder, "/bin/sh", {"-c", std::string{STARLING_PROGRAM} + " models > /dev/full"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("the results cannot be written"), std::string::npos) << ran.err;
}

/// A file that the program opens does not get the number of a closed stream, which would write into
/// it.
TEST(ClosedStream, WritesIntoNoFile) {
  for (const int closed : {STDOUT_FILENO, STDERR_FILENO}) {
    const Folder folder;
    const ProgramResult ran = Process{
        folder, STARLING_PROGRAM, words("train --data digits:n=300 --epochs 1 --metrics x.jsonl"),
        [closed] {
          ::close(closed);
        }}.wait();
    EXPECT_EQ(ran.code, closed == STDOUT_FILENO ? 1 : 0) << ran.err;
    std::istringstream metrics{folder.read("x.jsonl")};
    std::string line;
    while (std::getline(metrics, line)) EXPECT_TRUE(line.starts_with("{")) << line;
  }
}

}  // namespace
}  // namespace starling::program
