/// `starling run`, and the flow of a user's own program, run as programs.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"
#include "tests/tools/trace_rows.hpp"
#include "tests/waiting.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// A text of `words` words of which some are frequent.
std::string long_text(int words) {
  std::string text;
  for (int i = 0; i < words; ++i)
    text += "word" + std::to_string(i * 7919 % 30'011) + (i % 9 == 0 ? "\n" : " the ");
  return text;
}

TEST(Run, PrintsTheFirstLinesAndSaysHowManyAreLeftOut) {
  const Folder folder;
  folder.write("a.txt", "b a c a b a\nd");
  const ProgramResult all = starling(folder, "run wordcount --input a.txt");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(all.out, "a\t3\nb\t2\nc\t1\nd\t1\n");
  EXPECT_TRUE(contains(all.err, "result: 4 lines\n")) << all.err;
  const ProgramResult first = starling(folder, "run wordcount a.txt --lines 1 --workers 3");
  EXPECT_EQ(first.out, "a\t3\n");
  EXPECT_TRUE(contains(first.err, "result: 4 lines, of which 3 are left out; --output FOLDER"))
      << first.err;
  EXPECT_TRUE(contains(first.err, "text | flat_map | reduce_by_key ")) << first.err;
  EXPECT_TRUE(contains(first.err, "\nwordcount: 1 file, 3 workers, ")) << first.err;
  const ProgramResult quiet = starling(folder, "run sort --quiet --descending a.txt a.txt");
  EXPECT_EQ(quiet.out, "d\nd\nb a c a b a\nb a c a b a\n");
  EXPECT_EQ(quiet.err, "");
}

TEST(Run, SkipsUnreadableFilesWithAWarning) {
  const Folder folder;
  folder.write("a.txt", "a b a\n");
  folder.write("b.txt", "b\n");
  const ProgramResult refused = starling(folder, "run wordcount a.txt none.txt b.txt");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "starling: none.txt: no such file\n");
  const ProgramResult skipped =
      starling(folder, "run wordcount a.txt none.txt b.txt --skip-unreadable");
  EXPECT_EQ(skipped.code, 0);
  EXPECT_EQ(skipped.out, "a\t2\nb\t2\n");
  EXPECT_TRUE(contains(skipped.err, "starling: skipped none.txt: no such file\n")) << skipped.err;
  EXPECT_TRUE(contains(skipped.err, "wordcount: 3 files (1 skipped), ")) << skipped.err;
  const ProgramResult json =
      starling(folder, "run wordcount none.txt b.txt --skip-unreadable --json --quiet");
  EXPECT_EQ(json.err, "starling: skipped none.txt: no such file\n");
  EXPECT_EQ(Json::parse(json.out)["skipped"], Json::array({"none.txt: no such file"}));
  EXPECT_EQ(starling(folder, "run wordcount none.txt --skip-unreadable").code, 2);
  folder.write("n.csv", "k,v\n2,1\n1,5\n");
  for (const std::string flow :
       {"sort none.csv n.csv --column k", "join none.csv n.csv --with n.csv --column k",
        "histogram none.csv n.csv --column v", "kmeans none.csv n.csv --k 1"}) {
    const ProgramResult first =
        starling(folder, "run " + flow + " --header --skip-unreadable --quiet");
    EXPECT_EQ(first.code, 0) << flow << first.err;
    EXPECT_EQ(first.err, "starling: skipped none.csv: no such file\n") << flow;
  }
}

TEST(Run, WritesTheSameFilesWithAnyWorkersAndMemory) {
  const Folder folder;
  folder.write("big.txt", long_text(150'000));
  const std::string line = "run wordcount --input big.txt --json --parts 3 --output ";
  const ProgramResult one = starling(folder, line + "one --workers 1 --memory 512MB");
  ASSERT_EQ(one.code, 0) << one.err;
  const ProgramResult eight = starling(folder, line + "eight --workers 8 --memory 1MiB");
  ASSERT_EQ(eight.code, 0) << eight.err;
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"big.txt", "eight", "one"}));
  for (const std::string name : {"part-00000.txt", "part-00001.txt", "part-00002.txt"}) {
    EXPECT_FALSE(folder.read("one/" + name).empty()) << name;
    EXPECT_EQ(folder.read("one/" + name), folder.read("eight/" + name)) << name;
  }
  EXPECT_TRUE(folder.read("one/part-00000.txt").starts_with("the\t133333\n"));
  const Json small = Json::parse(eight.out);
  EXPECT_EQ(small["flow"], "wordcount");
  EXPECT_EQ(small["workers"], 8);
  EXPECT_EQ(small["output"], "eight");
  EXPECT_EQ(small["lines"], 30'012);
  EXPECT_GT(small["shuffled_bytes"], 1'000'000);
  EXPECT_GT(small["spilled_bytes"], 0);
  EXPECT_EQ(small["stages"][0]["operations"], "text | flat_map | reduce_by_key");
  EXPECT_EQ(small["stages"][0]["records_read"], lines(folder.read("big.txt")).size());
  EXPECT_EQ(Json::parse(one.out)["spilled_bytes"], 0);
}

TEST(Run, WritesATraceOfItsTasks) {
  const Folder folder;
  folder.write("big.txt", long_text(50'000));
  const ProgramResult ran =
      starling(folder, "run wordcount big.txt --parts 40 --workers 3 --quiet --trace t.json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const Json trace = Json::parse(folder.read("t.json"));
  EXPECT_EQ(trace["otherData"]["flow"], "wordcount");
  EXPECT_EQ(trace["otherData"]["tasks_dropped"], 0);
  const auto rows = rows_of(trace);
  EXPECT_GE(rows.size(), 1U);
  EXPECT_LE(rows.size(), 3U);
  std::set<std::string> names;
  for (const auto& [thread, row] : rows) {
    double end = 0;
    for (const Json& event : row) {
      EXPECT_GE(event["ts"].get<double>(), end) << "two tasks in one row at a time: " << event;
      end = event["ts"].get<double>() + event["dur"].get<double>();
      names.insert(event["name"]);
      EXPECT_GE(event["args"]["action"], 1) << event;
    }
  }
  EXPECT_TRUE(names.contains("text | flat_map | reduce_by_key, part 0")) << trace;
  for (int part = 0; part < 40; ++part)
    EXPECT_TRUE(names.contains("reduce_by_key | sort_by, part " + std::to_string(part))) << trace;
}

TEST(Run, RefusesATraceThatCannotBeWritten) {
  const Folder folder;
  folder.write("a.txt", "a\n");
  folder.write("b.txt", "b\n");
  const std::vector<std::pair<std::string, std::string>> refusals{
      {"sort a.txt --trace nowhere/t.json", "--trace: nowhere/t.json: cannot be written"},
      {"sort a.txt --trace ./a.txt", "--trace: './a.txt' is also the file of FILE"},
      {"join a.txt --with b.txt --trace b.txt", "--trace: 'b.txt' is also the file of FILE"},
      {"sort a.txt --trace ''", "--trace"}};
  for (const auto& [line, error] : refusals) {
    const ProgramResult ran = starling(folder, "run " + line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_TRUE(contains(ran.err, error)) << ran.err;
  }
  EXPECT_EQ(folder.read("a.txt"), "a\n");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.txt", "b.txt"}));
}

TEST(Run, ListsTheFlowsAndTheOptionsOfEach) {
  const Folder folder;
  const ProgramResult list = starling(folder, "run --help");
  EXPECT_EQ(list.code, 0);
  for (const std::string flow : {"wordcount", "sort", "join", "pagerank", "kmeans", "histogram"}) {
    EXPECT_TRUE(contains(list.out, "\n  " + flow + " ")) << list.out;
    const ProgramResult help = starling(folder, "run " + flow + " --help");
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_TRUE(contains(help.out, "--input FILE")) << help.out;
    EXPECT_TRUE(contains(help.out, "Options of " + flow + ":")) << help.out;
    for (const auto& line : lines(help.out)) EXPECT_LE(line.size(), 110U) << line;
    EXPECT_EQ(starling(folder, "help run " + flow).out, help.out);
  }
  EXPECT_TRUE(contains(starling(folder, "run kmeans --help").out, "--k K"));
}

TEST(Run, RefusesBadInputAndLeavesNothing) {
  const Folder folder;
  folder.write("a.txt", "a 1\nb 2\n");
  folder.write("taken", "");
  std::filesystem::create_directory(folder.path() / "folder");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"",
       "the flow to run is missing; valid: wordcount, sort, join, pagerank, kmeans, histogram, "
       "as in starling run wordcount --input FILE"},
      {"wordcuont a.txt", "unknown flow 'wordcuont'; did you mean 'wordcount'? valid: wordcount"},
      {"sort", "sort: no file to read was given; valid: --input FILE"},
      {"sort --input gone.txt", "gone.txt: no such file"},
      {"sort --input folder", "folder"},
      {"sort a.txt --output taken", "--output: taken: exists already; valid: the name of a new"},
      {"sort a.txt --output folder", "--output: folder: exists already"},
      {"sort a.txt --output gone/out", "--output: gone/out: no folder can be made"},
      {"sort gone.txt --output out", "gone.txt: no such file"},
      {"sort a.txt --workers 0", "--workers: "},
      {"sort a.txt --workers 33", "--workers: "},
      {"sort a.txt --parts 0", "--parts: "},
      {"sort a.txt --lines x", "--lines: "},
      {"sort a.txt --memory 100", "--memory: '100' must be bytes with a unit, such as 512MB"},
      {"sort a.txt --memory 1kB", "--memory: '1kB' must be bytes with a unit"},
      {"sort a.txt --spill gone", "--spill: spill_folder: 'gone' is not a folder"},
      {"sort a.txt --column 0 --output out", "--column: '0' is not the number of a column"},
      {"sort a.txt --k 3", "unknown flag '--k'"},
      {"kmeans a.txt --k 0 --output out", "kmeans: k=0 must be a whole number >= 1"},
      {"kmeans a.txt --k 1 --k 2", "--k: is given twice; valid: once"},
      {"pagerank a.txt --damping 2", "pagerank: damping=2 must be a number from 0 to 1"},
      {"join a.txt", "join: the right table is missing; valid: --with FILE"},
      {"join a.txt --with gone", "gone: no such file"}};
  const auto before = folder.names();
  for (const auto& [arguments, error] : cases) {
    const ProgramResult ran = starling(folder, "run " + arguments);
    EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.err;
    EXPECT_TRUE(contains(ran.err, error)) << arguments << "\n" << ran.err;
    EXPECT_EQ(ran.out, "") << arguments;
  }
  EXPECT_EQ(folder.names(), before);
}

TEST(Run, FailsAtABadLineAndLeavesNothing) {
  const Folder folder;
  folder.write("n.txt", "1\n2\nthree\n");
  for (const std::string flow : {"sort --numeric", "histogram", "kmeans --k 1"}) {
    const ProgramResult ran = starling(folder, "run " + flow + " n.txt --quiet --output out");
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_TRUE(contains(ran.err, ": n.txt:3: column 1: 'three' is not a finite number; valid: "))
        << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"n.txt"});
}

TEST(Run, StopsAndLeavesNothingWhenInterrupted) {
  const Folder folder;
  std::string links;
  for (int i = 0; i < 20'000; ++i)
    links += std::to_string(i % 999) + " " + std::to_string(i * 7919 % 1009) + "\n";
  folder.write("links.txt", links);
  Process process{folder, STARLING_PROGRAM,
                  words("run pagerank links.txt --iterations 10000 --output out --workers 2")};
  ASSERT_TRUE(wait_until([&] { return contains(process.err(), " parts, "); })) << process.err();
  process.signal(SIGINT);
  const ProgramResult ran = process.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_TRUE(contains(ran.err, "starling: stopping\n")) << ran.err;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"links.txt"});
}

TEST(Run, RunsTheFlowOfAnOwnProgram) {
  const Folder folder;
  folder.write("a.txt", "one\nthree\nseventeen\n");
  const auto own = [&](const std::string& line) {
    return run(folder, STARLING_OWN_PROGRAM, words(line));
  };
  const ProgramResult ran = own("run long-lines a.txt --bytes 5 --quiet");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "5\tthree\n9\tseventeen\n");
  EXPECT_TRUE(contains(own("run --help").out, "\n  long-lines "));
  EXPECT_TRUE(contains(own("run long-lines --help").out, "--bytes N"));
  EXPECT_EQ(own("run long-lines a.txt --bytes x").code, 2);
  EXPECT_EQ(own("run sort a.txt --quiet").out, "one\nseventeen\nthree\n");
}

}  // namespace
}  // namespace starling::program
