/// `starling advise`, run as a program.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// Returns step times of four workers, the last of which takes twice as long.
std::string straggler_csv() {
  std::string text = "worker,step,seconds\n";
  for (int step = 1; step <= 20; ++step)
    for (const char* row : {"a,#,0.1", "b,#,0.1", "c,#,0.1", "d,#,0.2"}) {
      std::string line = row;
      text += line.replace(2, 1, std::to_string(step)) + "\n";
    }
  return text;
}

TEST(Advise, NamesABarrierWithFiguresAndReasons) {
  const Folder folder;
  folder.write("t.csv", straggler_csv());
  const ProgramResult ran = starling(
      folder, "advise t.csv --seeds 3 --barrier bsp --barrier ssp:s=3 --barrier ebsp:ahead=15");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "\nadvice: ebsp:ahead=15\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "small learning rate, ebsp:ahead=15 reaches the target loss in "))
      << ran.out;
  EXPECT_TRUE(contains(ran.out, "times as fast as bsp, which takes ")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "does not bound how far apart the workers get")) << ran.out;
}

TEST(Advise, RefusesAVirtualTimeOfMoreThanAYear) {
  const Folder folder;
  std::string csv = straggler_csv();
  for (std::size_t at = 0; (at = csv.find(",0.", at)) != std::string::npos; ++at)
    csv.replace(at + 1, 3, "86400");
  folder.write("t.csv", csv);
  const ProgramResult ran = starling(folder, "advise t.csv --quiet --seeds 1 --steps 1000");
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_TRUE(contains(ran.err, "days; valid: at most 365, by fewer --steps")) << ran.err;
}

/// printable() keeps surrogates, which JSON does not allow.
TEST(Advise, PrintsValidJsonForANameThatIsNoUtf8) {
  const Folder folder;
  std::string csv = straggler_csv();
  for (std::size_t at = 0; (at = csv.find("\nd,", at)) != std::string::npos; ++at)
    csv.replace(at + 1, 1, "\xed\xa0\x80");
  folder.write("t.csv", csv);
  const ProgramResult ran = starling(
      folder, "advise t.csv --json --quiet --seeds 1 --steps 100 --seed 18446744073709551615");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["workers"].size(), 4U);
}

TEST(Advise, GivesTheSameBytesForASeedOnAnyNumberOfThreads) {
  const Folder folder;
  folder.write("t.csv", straggler_csv());
  const std::string command = "advise t.csv --json --quiet --seeds 2 --steps 100 --seed ";
  const ProgramResult one = starling(folder, command + "5 --threads 1");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, starling(folder, command + "5 --threads 3").out);
  const Json json = Json::parse(one.out);
  EXPECT_EQ(json["seed"], 5);
  EXPECT_EQ(json["workers"].size(), 4U);
  EXPECT_EQ(json["workers"][3]["slowness"], 2);
  EXPECT_EQ(json["horizon_s"], 20);
  EXPECT_GE(json["barriers"].size(), 9U);
  bool is_listed = false;
  for (const Json& barrier : json["barriers"])
    is_listed = is_listed || barrier["barrier"] == json["advice"];
  EXPECT_TRUE(is_listed) << one.out;
}

TEST(Advise, ReadsATraceOfTrain) {
  const Folder folder;
  const ProgramResult trained = starling(
      folder,
      "train --workers 3 --mode central --barrier asp --delay const:3ms --straggler 1:4x "
      "--data linear:d=2,n=300 --model linear --batch 4 --steps 60 --quiet --trace t.json");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const ProgramResult ran = starling(folder, "advise t.json --json --seeds 2 --steps 100");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(json["workers"].size(), 3U);
  for (const Json& worker : json["workers"]) EXPECT_EQ(worker["steps"], 60);
  EXPECT_GT(json["workers"][2]["mean_s"], 0.012);
}

TEST(Advise, ComparesOnlySampledBarriersWithoutServers) {
  const Folder folder;
  folder.write("t.csv", straggler_csv());
  const ProgramResult ran =
      starling(folder, "advise t.csv --json --mode peer --seeds 1 --steps 100");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_GE(json["barriers"].size(), 3U);
  for (const Json& barrier : json["barriers"]) {
    const auto name = barrier["barrier"].get<std::string>();
    EXPECT_TRUE(name == "asp" || name.starts_with("p") || name.starts_with("tuned:")) << name;
  }
}

TEST(Advise, RefusesBadInputWithItsPlace) {
  const Folder folder;
  folder.write("t.csv", straggler_csv());
  folder.write("bad.csv", straggler_csv() + "a,21,x\n");
  folder.write("cut.csv", straggler_csv() + "a,21,0.");
  folder.write("empty.csv", "");
  folder.write("outlier.csv", straggler_csv() + "a,21,80000\n");
  folder.write("bom.csv", "\xef\xbb\xbf" + straggler_csv());
  folder.write("array.json", "[]\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"bad.csv", "bad.csv:82: seconds: 'x'; valid: a number above 0"},
      {"cut.csv", "cut.csv:82: the line has no end: the file is cut off"},
      {"empty.csv", "empty.csv: is empty; valid: "},
      {"missing.csv", "missing.csv"},
      {"", "the step times are missing; valid: starling advise FILE"},
      {"t.csv --from 127.0.0.1:1", "--from: both it and the file 't.csv' are given"},
      {"t.csv --record 3s", "--record: is of no use for a file; valid: with --from"},
      {"--from 127.0.0.1:1 --record 0s", "--record: '0s'; valid: 1s to 1h"},
      {"t.csv --seeds 0", "--seeds"},
      {"t.csv --steps 99", "--steps"},
      {"t.csv --mode ring", "--mode: "},
      {"t.csv --barrier bsq --barrier asp", "--barrier: "},
      {"t.csv --barrier asp", "--barrier: asp alone has no other to be compared with; valid: "},
      {"t.csv --barrier asp --barrier asp", "--barrier: 'asp' is given twice"},
      {"t.csv --barrier bsp --barrier absp", "--barrier: barrier absp: hands in some"},
      {"t.csv --barrier bsp --barrier tuned:progress", "barrier tuned:progress: follows the loss"},
      {"outlier.csv", "outlier.csv: the steps of worker 'a' take "},
      {"bom.csv", "bom.csv: begins with a byte order mark"},
      {"array.json", "array.json: is an array; valid: a trace that train --trace wrote"},
      {"t.csv --barrier asp --barrier pbsp:beta=4", "beta"},
      {"t.csv --mode peer --barrier asp --barrier bsp", "bsp"},
      {"t.csv --stepz 5", "--stepz"}};
  for (const auto& [arguments, error] : cases) {
    const ProgramResult ran = starling(folder, "advise " + arguments);
    EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.out;
    EXPECT_TRUE(contains(ran.err, error)) << arguments << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << arguments;
  }
}

TEST(Advise, HasAHelpOfNarrowLines) {
  const Folder folder;
  for (const char* command : {"advise --help", "repro barriers --help"}) {
    const ProgramResult ran = starling(folder, command);
    EXPECT_EQ(ran.code, 0);
    for (const auto& line : lines(ran.out)) EXPECT_LE(line.size(), 110U) << line;
  }
}

}  // namespace
}  // namespace starling::program
