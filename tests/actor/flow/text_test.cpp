/// Text files as sources.
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "starling/actor/flow/save_text.hpp"
#include "tests/actor/flow/flow_cases.hpp"

namespace starling::flow {
namespace {

/// A folder that the destructor removes.
class TextFolder {
 public:
  TextFolder() {
    std::string name = ::testing::TempDir() + "/flow-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TextFolder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream{path_ / name, std::ios::binary} << content;
    return (path_ / name).string();
  }
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Returns the content of a file.
  std::string read(const std::string& name) const {
    std::ifstream stream{path_ / name, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }
  /// Returns the number of files and folders in the folder.
  std::size_t size() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{path_}, {}));
  }
  std::string write_gzip(const std::string& name, const std::string& content) const {
    const std::string path = (path_ / name).string();
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return path;
  }

 private:
  std::filesystem::path path_;
};

MapReduce engine_with_splits(std::uint64_t split_bytes) {
  return MapReduce::make({.threads = 3, .split_bytes = split_bytes}).value();
}

TEST(Text, SplitsReadEachLineOnce) {
  const TextFolder folder;
  Random random{5};
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> lines(random.below(30));
    std::string content;
    for (auto& line : lines) {
      line.assign(random.below(12), static_cast<char>('a' + random.below(26)));
      content += line + (random.below(4) == 0 ? "\r\n" : "\n");
    }
    const bool ends_without_newline = !lines.empty() && !lines.back().empty() && round % 2 == 0;
    if (ends_without_newline) content.erase(content.find_last_not_of("\r\n") + 1);
    const std::string path = folder.write("text", content);
    for (const std::uint64_t bytes : {1U, 2U, 7U, 1000U}) {
      const auto set = engine_with_splits(bytes).text({path});
      EXPECT_EQ(set->collect().value(), lines) << "splits of " << bytes << " bytes";
    }
  }
}

/// The files have holes, and are not read.
TEST(Text, PartsOfLargeFilesAreOf8To32MiB) {
  const TextFolder folder;
  const std::string path = folder.write("large", "");
  const auto parts_of = [&](std::uint64_t mebibytes, Part parts) {
    std::filesystem::resize_file(path, mebibytes << 20U);
    return MapReduce::make({.parts = parts}).value().text({path})->parts();
  };
  EXPECT_EQ(parts_of(7, 16), 1U);
  EXPECT_EQ(parts_of(9, 16), 2U);
  EXPECT_EQ(parts_of(256, 16), 32U);
  EXPECT_EQ(parts_of(500, 16), 32U);
  EXPECT_EQ(parts_of(501, 16), 32U);
  EXPECT_EQ(parts_of(2048, 16), 64U);
  EXPECT_EQ(parts_of(2048, 1000), 256U);
  EXPECT_EQ(parts_of(500, 1), 16U);
}

TEST(Text, ReadsManyFilesPlainAndGzip) {
  const TextFolder folder;
  const std::string plain = folder.write("a.txt", "eins\nzwei\n");
  const std::string zipped = folder.write_gzip("b.gz", "drei\nvier");
  const std::string empty = folder.write("c.txt", "");
  const auto set = engine_with_splits(3).text({zipped, empty, plain});
  EXPECT_EQ(set->collect().value(), (std::vector<std::string>{"drei", "vier", "eins", "zwei"}));
  EXPECT_EQ(set->parts(), 5U);  // the gzip file is one part
}

TEST(Text, FailsIfAFileBecomesShorterMeanwhile) {
  const TextFolder folder;
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "line " + std::to_string(i) + '\n';
  const std::string path = folder.write("a.txt", text);
  const auto engine = make_engine(2);
  const auto lines = engine.text({path});
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->count().value(), 10'000U);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto count = lines->count();
  ASSERT_FALSE(count);
  EXPECT_NE(count.error().message.find("the file has become shorter since the flow began"),
            std::string::npos)
      << count.error().message;
}

TEST(Text, LeavesOutTheHeaderOfEachFile) {
  const TextFolder folder;
  const std::vector<std::string> paths{
      folder.write("a.csv", "a header, longer than a split\n1\n2\n"), folder.write("b.csv", "x"),
      folder.write("c.csv", ""), folder.write_gzip("d.gz", "x\n3"), folder.write("e.csv", "\n4\n")};
  for (const std::uint64_t bytes : {1U, 3U, 31U, 1000U})
    EXPECT_EQ(engine_with_splits(bytes).text(paths, true)->collect().value(),
              (std::vector<std::string>{"1", "2", "3", "4"}))
        << "splits of " << bytes << " bytes";
}

TEST(Text, SkipsAByteOrderMark) {
  const TextFolder folder;
  const std::string content = "\xef\xbb\xbfone\n\xef\xbb\xbftwo";
  const std::vector<std::string> expected{"one", "\xef\xbb\xbftwo"};
  for (const auto& path : {folder.write("a.txt", content), folder.write_gzip("a.gz", content)})
    for (const std::uint64_t bytes : {2U, 1000U})
      EXPECT_EQ(engine_with_splits(bytes).text({path})->collect().value(), expected);
}

TEST(Text, ErrorsNameTheLine) {
  const TextFolder folder;
  const std::string content = "one\ntwo\n\nbad\nfive\n";
  for (const std::string& path :
       {folder.write("a.txt", content), folder.write_gzip("a.gz", content)}) {
    const auto set = engine_with_splits(5).text({path});
    const auto failing = set->map([](const std::string& line) {
      if (line == "bad") throw std::runtime_error{"a bad line"};
      return line;
    });
    EXPECT_EQ(failing.count().error().message, path + ":4: a bad line");
  }
}

TEST(Text, SkipsUnreadableFilesIfAsked) {
  const TextFolder folder;
  const auto a = folder.write("a.txt", "one\ntwo\n");
  const auto b = folder.write_gzip("b.gz", "three\n");
  const auto missing = folder.path("missing.txt");
  EXPECT_EQ(engine_with_splits(100).text({a, missing, b}).error().message,
            missing + ": no such file");
  const auto engine =
      MapReduce::make({.threads = 2, .split_bytes = 3, .skip_unreadable = true}).value();
  const std::vector<std::string> lines{"one", "two", "three"};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(engine.text({a, missing, b, "/dev"})->collect().value(), lines);
    const auto skipped = engine.skipped_files();
    ASSERT_EQ(skipped.size(), 2U);
    EXPECT_EQ(skipped[0].message, missing + ": no such file");
    EXPECT_TRUE(skipped[1].message.starts_with("/dev: ")) << skipped[1].message;
  }
  EXPECT_EQ(engine.text({missing, "/dev"}).error().message, missing + ": no such file");
  // The part that names the file fails if the file goes away later.
  const auto set = engine.text({a, b}).value();
  std::filesystem::remove(a);
  EXPECT_NE(set.count().error().message.find(a + ": cannot be opened"), std::string::npos);
}

TEST(Text, RefusesWhatIsNoReadableFile) {
  const TextFolder folder;
  const auto engine = engine_with_splits(100);
  EXPECT_EQ(engine.text({"/nowhere.txt"}).error().message, "/nowhere.txt: no such file");
  EXPECT_NE(engine.text({"/dev"}).error().message.find("/dev"), std::string::npos);
  const auto unsized = engine.text({"/proc/self/status"});
  ASSERT_FALSE(unsized);
  EXPECT_TRUE(unsized.error().message.starts_with("/proc/self/status: the system does not tell "))
      << unsized.error().message;
  EXPECT_EQ(engine.text({}).error().message, "no text file was given; valid: one or more files");
  const std::string path = folder.write_gzip("a.gz", std::string(100'000, 'x'));
  std::filesystem::resize_file(path, 60);
  const auto damaged = engine.text({path})->count();
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find(path), std::string::npos);
}

TEST(SaveText, WritesAFileForEachPart) {
  const TextFolder folder;
  const auto set = make_engine(3, 2).collection(Pairs{{"ä", 1}, {"", -2}, {"c", 3}});
  EXPECT_EQ(save_text(set, folder.path("out")).value(), 3U);
  EXPECT_EQ(folder.read("out/part-00000.txt") + folder.read("out/part-00001.txt"),
            "ä\t1\n\t-2\nc\t3\n");
  EXPECT_EQ(folder.size(), 1U);
  std::filesystem::create_directory(folder.path("new"));
  EXPECT_EQ(std::filesystem::status(folder.path("out")).permissions(),
            std::filesystem::status(folder.path("new")).permissions());
  EXPECT_EQ(save_text(set, folder.path("out")).error().message,
            folder.path("out") + ": exists already; valid: the name of a new folder");
}

/// So commit() need not find out the umask, by changing that of the whole process.
TEST(SaveText, MakesItsFolderWithThePermissionsOfANewOne) {
  const TextFolder folder;
  const auto output = OutputFolder::make(folder.path("out")).value();
  const std::filesystem::path made = *std::filesystem::directory_iterator{folder.path("")};
  std::filesystem::create_directory(folder.path("new"));
  EXPECT_EQ(std::filesystem::status(made).permissions(),
            std::filesystem::status(folder.path("new")).permissions());
}

TEST(SaveText, LeavesNothingBehindIfThePlanFails) {
  const TextFolder folder;
  const auto set = make_engine(2).generate(100, [](std::uint64_t i) {
    if (i == 99) throw std::runtime_error{"a bad record"};
    return i;
  });
  EXPECT_EQ(save_text(set, folder.path("out")).error().message,
            "generator: record 99: a bad record");
  EXPECT_EQ(folder.size(), 0U);
}

TEST(SharedFolder, AppearsOnceAndEachWriterCommits) {
  const TextFolder folder;
  auto first = OutputFolder::shared(folder.path("out/"), "token").value();
  auto second = OutputFolder::shared(folder.path("out"), "token").value();
  const auto write = [](const OutputFolder& output, Part part, const std::string& line) {
    PartFile file = output.open_part(part);
    file.add_line(line);
    file.finish();
  };
  write(first, 0, "zero");
  EXPECT_EQ(first.commit(2).error().message,
            folder.path("out") + ": the files of some parts are gone from " + folder.path("out") +
                ".starling-token; valid: a folder on a file "
                "system that all nodes share");
  write(second, 1, "one");
  write(second, 0, "zero");
  // This file is not finished when the first writer ends.
  PartFile late = second.open_part(1);
  late.add_line("one");
  ASSERT_TRUE(first.commit(2));
  EXPECT_EQ(folder.read("out/part-00000.txt") + folder.read("out/part-00001.txt"), "zero\none\n");
  late.finish();
  write(second, 0, "zero");
  ASSERT_TRUE(second.commit(2));
  // A writer that begins now finds no temporary folder, and all parts in the final one.
  {
    auto third = OutputFolder::shared(folder.path("out"), "token").value();
    EXPECT_EQ(folder.size(), 2U);
    ASSERT_TRUE(third.commit(2));
  }
  EXPECT_EQ(folder.read("out/part-00000.txt") + folder.read("out/part-00001.txt"), "zero\none\n");
  EXPECT_EQ(folder.size(), 1U);
  const std::filesystem::directory_iterator files{folder.path("out")};
  EXPECT_EQ(std::distance(files, {}), 2);
}

TEST(SharedFolder, IsRemovedByTheLastWriterThatEnds) {
  const TextFolder folder;
  {
    auto first = OutputFolder::shared(folder.path("out"), "token").value();
    {
      const auto second = OutputFolder::shared(folder.path("out"), "token").value();
      second.open_part(0).finish();
    }
    EXPECT_EQ(folder.size(), 1U);
    const auto other = OutputFolder::shared(folder.path("out"), "other").value();
    EXPECT_EQ(folder.size(), 2U);
  }
  EXPECT_EQ(folder.size(), 0U);
}

/// A writer that was killed leaves its temporary folder, which then nobody locks.
TEST(SharedFolder, IsRemovedAsAbandonedOnlyIfNoWriterHasIt) {
  const TextFolder folder;
  auto output = OutputFolder::shared(folder.path("out"), "token").value();
  output.open_part(0).finish();
  for (const char* name : {"out.starling-dead", "other.starling-dead"}) {
    std::filesystem::create_directory(folder.path(name));
    folder.write(std::string{name} + "/.starling-lock", "");
  }
  std::filesystem::create_directory(folder.path("out.starling-XXXXXX"));  // of one writer
  OutputFolder::remove_abandoned(folder.path("out/"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out.starling-dead")));
  EXPECT_EQ(folder.size(), 3U);
  EXPECT_TRUE(output.commit(1));
  EXPECT_TRUE(std::filesystem::exists(folder.path("out/part-00000.txt")));
}

TEST(SharedFolder, DoesNotReplaceAFolder) {
  const TextFolder folder;
  auto output = OutputFolder::shared(folder.path("out"), "token").value();
  output.open_part(0).finish();
  std::filesystem::create_directory(folder.path("out"));
  EXPECT_NE(output.commit(1).error().message.find(
                folder.path("out") + ": the finished folder cannot be given this name: "),
            std::string::npos);
  EXPECT_NE(OutputFolder::shared(folder.path("gone/out"), "token")
                .error()
                .message.find(folder.path("gone/out") + ": no folder can be made: "),
            std::string::npos);
}

TEST(SharedFolder, HasTheSameFilesIfSeveralWritersSaveASet) {
  const TextFolder folder;
  const auto set = make_engine(3, 7).generate(1000, [](std::uint64_t i) { return i * i; });
  ASSERT_TRUE(save_text(set, folder.path("alone")));
  std::vector<OutputFolder> outputs;
  for (int i = 0; i < 4; ++i)
    outputs.push_back(OutputFolder::shared(folder.path("out"), "token").value());
  std::vector<std::thread> writers;
  std::vector<std::uint64_t> lines(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    writers.emplace_back([&, i] {
      if (const auto saved = save_text(set, outputs[i])) lines[i] = *saved;
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(lines, std::vector<std::uint64_t>(outputs.size(), 1000));
  EXPECT_EQ(folder.size(), 2U);
  for (const auto& file : std::filesystem::directory_iterator{folder.path("alone")}) {
    const std::string name = file.path().filename().string();
    EXPECT_EQ(folder.read("out/" + name), folder.read("alone/" + name)) << name;
  }
}

}  // namespace
}  // namespace starling::flow
