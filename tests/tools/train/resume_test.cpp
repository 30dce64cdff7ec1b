/// Resumes jobs from checkpoints. A resumed job continues as if it had never stopped; the
/// checkpoint of another job is refused.
#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"
#include "tests/waiting.hpp"

namespace starling::program {
namespace {

class Resume : public testing::Test {
 protected:
  ProgramResult train(const std::string& more) const { return starling(folder_, small_job + more); }
  Folder folder_;
};

TEST_F(Resume, UnderBspIsExact) {
  ASSERT_EQ(train("--schedule constant --steps 20 --save straight").code, 0);
  ASSERT_EQ(train("--schedule constant --steps 10 --checkpoint c --save half").code, 0);
  const ProgramResult rest =
      train("--schedule constant --steps 20 --resume c --save resumed --json");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(folder_.read("resumed"), folder_.read("straight"));
  EXPECT_NE(folder_.read("half"), folder_.read("straight"));
  const auto json = nlohmann::json::parse(rest.out);
  EXPECT_EQ(json["updates"], 40) << "counts from the beginning, as steps do";
  EXPECT_EQ(json["spread"]["max"], 20);
}

TEST_F(Resume, FromACheckpointDuringTheJobIsExactToo) {
  ASSERT_EQ(train("--steps 20 --save straight").code, 0);
  // The job is killed after its first checkpoint, which it writes at step 4.
  Process long_job{folder_, STARLING_PROGRAM,
                   words(std::string{small_job} + "--steps 20 --delay const:30ms --checkpoint c "
                                                  "--checkpoint-every 4")};
  ASSERT_TRUE(wait_until([&] { return folder_.has("c"); }))
      << "the job writes no checkpoint: " << long_job.err();
  long_job.signal(SIGKILL);
  EXPECT_EQ(long_job.wait().code, 128 + SIGKILL);
  ASSERT_EQ(train("--steps 20 --resume c --save resumed").code, 0);
  EXPECT_EQ(folder_.read("resumed"), folder_.read("straight"));
}

TEST_F(Resume, WorksInPeerMode) {
  const std::string job = "train --data digits:n=300 --model softmax --quiet --json ";
  ASSERT_EQ(starling(folder_, job + "--steps 10 --checkpoint c").code, 0);
  const ProgramResult rest = starling(folder_, job + "--steps 30 --resume c --checkpoint c");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(nlohmann::json::parse(rest.out)["updates"], 120);
  EXPECT_EQ(nlohmann::json::parse(rest.out)["spread"]["min"], 30);
}

TEST_F(Resume, ACheckpointIsAModelFileToo) {
  ASSERT_EQ(train("--steps 10 --checkpoint c").code, 0);
  EXPECT_EQ(starling(folder_, "evaluate --model-file c").code, 0);
}

TEST_F(Resume, RefusesTheCheckpointOfAnotherJobByKey) {
  ASSERT_EQ(train("--steps 10 --checkpoint c --save m").code, 0);
  struct Other {
    std::string flags;
    std::string error_part;
  };
  for (const Other& other : std::vector<Other>{
           {"--seed 2", "its seed is 1, not 2; valid: the same seed, or init in place of resume"},
           {"--optimizer sgd:lr=0.1", "its optimizer is adam:lr=0.02, not sgd:lr=0.1"},
           {"--l2 0.5", "its l2 is 0.004166666666666667, not 0.5"},
           {"--holdout 0.5", "its holdout is none, not 0.5"},
           {"--dtype float64", "its dtype is float32, not float64"}}) {
    const ProgramResult ran = train("--steps 20 --resume c " + other.flags);
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("--resume: c: is of another job: " + other.error_part),
              std::string::npos)
        << ran.err;
  }
}

/// The default optimizer and schedule may be written out.
TEST_F(Resume, ComparesSchedulesByTheirValues) {
  const std::string job =
      "train --data digits:n=300 --model softmax --mode central --barrier bsp --quiet ";
  ASSERT_EQ(starling(folder_, job + "--steps 10 --checkpoint c").code, 0);
  const ProgramResult spelled =
      starling(folder_, job + "--steps 20 --optimizer adam:lr=0.02 --resume c --checkpoint d");
  EXPECT_EQ(spelled.code, 0) << spelled.err;
  const std::string content = folder_.read("d");
  const std::string key = "\"job.schedule-value\":\"";
  const auto from = content.find(key) + key.size();
  const std::string schedule = content.substr(from, content.find('"', from) - from);
  ASSERT_EQ(schedule.find("cosine:samples="), 0U) << schedule;
  const ProgramResult same =
      starling(folder_, job + "--steps 30 --resume d --schedule " + schedule);
  EXPECT_EQ(same.code, 0) << same.err;
  const ProgramResult other =
      starling(folder_, job + "--steps 30 --resume d --schedule cosine:samples=7");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("its schedule is the default, which was " + schedule +
                           ", not cosine:samples=7,floor=0; valid: the same schedule"),
            std::string::npos)
      << other.err;
}

TEST_F(Resume, TheRowsDecideWhichDataItIsNotThePath) {
  std::string rows = "a,b,y\n";
  for (int row = 0; row < 20; ++row)
    rows += std::to_string(row % 7) + "," + std::to_string(row % 3) + "," +
            std::to_string(row % 2) + "\n";
  folder_.write("rows.csv", rows);
  folder_.write("moved.csv", rows);
  folder_.write("other.csv", rows + "1,1,1\n");
  const auto train_on = [&](const std::string& file, const std::string& more) {
    return starling(folder_,
                    "train --model softmax --workers 2 --batch 2 --scale none --quiet "
                    "--l2 0.1 --data csv:" +
                        file + ",label=y --test csv:" + file + ",label=y " + more);
  };
  const ProgramResult first = train_on("rows.csv", "--steps 5 --checkpoint c");
  ASSERT_EQ(first.code, 0) << first.err;
  const ProgramResult moved =
      train_on((folder_.path() / "moved.csv").string(), "--steps 10 --resume c --save m");
  EXPECT_EQ(moved.code, 0) << moved.err;
  const ProgramResult other = train_on("other.csv", "--steps 10 --resume c");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("--resume: c: is of another job: its training data, read from "
                           "'csv:rows.csv,label=y', had other rows; valid: the same rows"),
            std::string::npos)
      << other.err;
}

TEST_F(Resume, RefusesAFileThatIsNoCheckpointAndAFinishedJob) {
  ASSERT_EQ(train("--steps 10 --checkpoint c --save m").code, 0);
  EXPECT_NE(train("--resume m").err.find("m: is no checkpoint"), std::string::npos);
  EXPECT_NE(train("--resume none").err.find("none: no such file"), std::string::npos);
  EXPECT_NE(train("--steps 10 --resume c").err.find("is at step 10 already"), std::string::npos);
  EXPECT_EQ(train("--steps 10 --resume c").code, 2);
  const std::string whole = folder_.read("c");
  for (const std::size_t bytes : {std::size_t{7}, whole.size() / 2, whole.size() - 1}) {
    folder_.write("cut", whole.substr(0, bytes));
    const ProgramResult ran = train("--steps 20 --resume cut");
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("--resume: cut: "), std::string::npos) << ran.err;
  }
}

TEST_F(Resume, AppendsToTheMetrics) {
  ASSERT_EQ(train("--steps 10 --eval-every 5 --checkpoint c --metrics x").code, 0);
  const std::string first = folder_.read("x");
  ASSERT_EQ(train("--steps 20 --eval-every 5 --resume c --metrics x").code, 0);
  ASSERT_TRUE(folder_.read("x").starts_with(first));
  std::istringstream lines{folder_.read("x")};
  std::uint64_t updates = 0;
  int ends = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    ends += json["event"] == "end" ? 1 : 0;
    if (!json.contains("updates")) continue;
    EXPECT_GE(json["updates"], updates) << line;
    updates = json["updates"];
  }
  EXPECT_EQ(updates, 40U);
  EXPECT_EQ(ends, 2);
  ASSERT_EQ(train("--steps 10 --metrics x").code, 0);
  EXPECT_FALSE(folder_.read("x").starts_with(first)) << "a new job starts a new file";
}

TEST_F(Resume, RefusesADamagedCheckpoint) {
  ASSERT_EQ(train("--steps 10 --checkpoint c").code, 0);
  const std::string whole = folder_.read("c");
  std::string damaged = whole;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  folder_.write("c", damaged);
  const ProgramResult ran = train("--steps 20 --resume c --checkpoint c");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--resume: c: is damaged"), std::string::npos) << ran.err;
  EXPECT_EQ(folder_.read("c"), damaged);
  folder_.write("c", with_nan(whole, "bias", 3));
  const ProgramResult nan = train("--steps 20 --resume c --trust-file");
  EXPECT_EQ(nan.code, 2);
  EXPECT_NE(nan.err.find("--resume: c: tensor 'bias' holds nan at [3]"), std::string::npos)
      << nan.err;
}

TEST_F(Resume, NoticesChangedData) {
  folder_.write("x.csv", "1,0\n2,1\n3,0\n4,1\n5,0\n");
  const std::string job =
      "train --data csv:x.csv --model softmax --workers 1 --barrier asp --quiet ";
  ASSERT_EQ(starling(folder_, job + "--steps 3 --checkpoint c").code, 0);
  ASSERT_EQ(starling(folder_, job + "--steps 6 --resume c").code, 0);
  folder_.write("x.csv", "1.5,0\n2,1\n3,0\n4,1\n5.5,0\n");
  const ProgramResult ran = starling(folder_, job + "--steps 6 --resume c");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("had other rows; valid: the same rows in the same order, "
                         "or init in place of resume"),
            std::string::npos)
      << ran.err;
}

TEST_F(Resume, AcceptsAFileWithoutAChecksumOnlyWithTrustFile) {
  ASSERT_EQ(train("--steps 10 --checkpoint c").code, 0);
  std::string bare = folder_.read("c");
  bare.replace(bare.find("crc32"), 5, "other");
  folder_.write("bare", bare);
  for (const ProgramResult& refused :
       {train("--steps 20 --resume bare"), starling(folder_, "evaluate --model-file bare"),
        starling(folder_, "predict bare")}) {
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("bare: has no checksum ('crc32' in its metadata)"),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find(" wrote, or --trust-file"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(train("--steps 20 --resume bare --trust-file").code, 0);
  EXPECT_EQ(starling(folder_, "evaluate --model-file bare --trust-file").code, 0);
  EXPECT_EQ(starling(folder_, "predict bare --trust-file").code, 0);
  EXPECT_NE(starling(folder_, "inspect bare").out.find(", no checksum\n"), std::string::npos);
  EXPECT_NE(starling(folder_, "inspect c").out.find(", checksum right\n"), std::string::npos);
  const ProgramResult without_file = train("--steps 20 --trust-file");
  EXPECT_EQ(without_file.code, 2);
  EXPECT_NE(without_file.err.find("--trust-file: needs the name of a file: --resume FILE"),
            std::string::npos)
      << without_file.err;
}

/// A job that resumed from a contradictory ledger would wait for ever or leave out steps.
TEST_F(Resume, RefusesLedgersThatContradictThemselves) {
  /// A number that contradicts the rest of the checkpoint.
  struct WrongNumber {
    const char* tensor;
    std::size_t element;
    std::uint64_t number;
    const char* error_part;
  };
  constexpr std::uint64_t wraps = std::uint64_t{1} << 32U;
  const std::vector<WrongNumber> wrong_numbers{
      {"starling.ledger", 0, 64, "holds incarnation 64 of worker 0 in range 0; valid: 0"},
      {"starling.ledger", 3, wraps,
       "holds incarnation 4294967296 of worker 1 in range 0; valid: 0, with which every worker "
       "of a resumed job starts"},
      {"starling.ledger", 7, 64, "holds worker 0 at step 64 of range 1, which has had 20 updates"},
      {"starling.ledger", 1, UINT64_MAX, "holds step 18446744073709551615 of worker 0"},
      {"starling.ledger", 2, 1'000'000, "holds worker 0 with 1000000 samples at step 10"},
      {"starling.ranges", 0, 0, "range 0 counts "},
      {"starling.ranges", 1, UINT64_MAX,
       "holds 20 updates of 18446744073709551615 samples in range 0, which no job reaches"}};
  for (const std::string mode : {"peer --barrier asp", "central --barrier ssp:s=4"}) {
    const std::string job =
        "train --data digits:n=300 --model mlp:784-128-10 --workers 2 --quiet " +
        ("--trust-file --mode " + mode) + " ";
    const std::string first = "train --data digits:n=300 --model mlp:784-128-10 --workers 2 " +
                              ("--quiet --mode " + mode) + " ";
    ASSERT_EQ(starling(folder_, first + "--steps 10 --checkpoint c").code, 0);
    const std::string whole = folder_.read("c");
    for (const auto& [tensor, element, number, error_part] : wrong_numbers) {
      folder_.write("d", with_number(whole, tensor, element, number));
      const ProgramResult ran = starling(folder_, job + "--steps 20 --resume d");
      EXPECT_EQ(ran.code, 2) << error_part;
      EXPECT_NE(ran.err.find(std::string{"--resume: d: "} + error_part), std::string::npos)
          << ran.err << error_part;
    }
  }
}

TEST_F(Resume, ShowsNoControlCharacterOfAFile) {
  ASSERT_EQ(train("--l2 0.01 --steps 10 --checkpoint c").code, 0);
  std::string evil = folder_.read("c");
  evil.replace(evil.find("crc32"), 5, "other");
  const std::string data = "digits:n=300";
  for (auto at = evil.find(data); at != std::string::npos; at = evil.find(data))
    evil.replace(at, data.size(), "\\u001b\\u009b");
  folder_.write("evil", evil);
  const ProgramResult seen = starling(folder_, "inspect evil");
  std::string other_data = small_job;
  other_data.replace(other_data.find(data), data.size(), "digits:n=301");
  const ProgramResult refused =
      starling(folder_, other_data + "--l2 0.01 --steps 20 --resume evil --trust-file");
  EXPECT_EQ(seen.code, 0) << seen.err;
  EXPECT_EQ(refused.code, 2);
  for (const std::string& text : {seen.out, refused.err}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
    EXPECT_NE(text.find("\\x1b\\xc2\\x9b"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace starling::program
