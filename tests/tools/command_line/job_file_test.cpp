#include "starling/tools/command_line/job_file.hpp"

#include "starling/tools/job/job.hpp"
#include "starling/tools/job/keys.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

Result<Settings> read(const std::string& content) {
  const Folder folder;
  folder.write("job.toml", content);
  return read_job_file((folder.path() / "job.toml").string());
}

TEST(JobFile, GivesSettingsInTheOrderOfLines) {
  const auto settings = read(
      "# a comment\n"
      "workers = 8\n"
      "\n"
      "data = \"digits:n=300\"  # another\n"
      "holdout = 0.25\n"
      "straggler = [\"1:4x\", \"5%:2x\"]\n"
      "json = false\n");
  ASSERT_TRUE(settings) << settings.error().message;
  std::vector<std::string> all;
  for (const auto& setting : *settings) all.push_back(setting.key + "=" + setting.text);
  EXPECT_EQ(all, (std::vector<std::string>{"workers=8", "data=digits:n=300", "holdout=0.25",
                                           "straggler=1:4x", "straggler=5%:2x", "json=false"}));
  EXPECT_TRUE((*settings)[1].place.ends_with("job.toml:4: data"));
}

TEST(JobFile, MayBeEmpty) {
  const auto settings = read("");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(settings->empty());
}

TEST(JobFile, OfWhatIsNoUtf8IsRefusedWithItsLine) {
  EXPECT_TRUE(read("save = \"\u00e4 \u20ac \U0001f426\"\n"));
  for (const char* bytes : {"\x94", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                            "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff"})
    for (const char* quote : {"'", "\"", "'''", "\"\"\""}) {
      const auto refused =
          read("seed = 1\ndata = " + std::string{quote} + "digits" + bytes + quote + "\n");
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.error().message.find("job.toml:2: is no TOML: "), std::string::npos)
          << refused.error().message;
    }
}

TEST(JobFile, NestedWithoutEndIsRefused) {
  for (const char* open : {"[", "{a=", "[{a="}) {
    std::string deep = "barrier = ";
    for (int i = 0; i < 100'000; ++i) deep += open;
    const auto refused = read(deep);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("depth"), std::string::npos) << refused.error().message;
  }
  EXPECT_FALSE(read("barrier = " + std::string(256, '[') + std::string(256, ']')));
}

TEST(JobFile, OfKeysOfVeryManyPartsIsRefused) {
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "a.";
  const auto refused = read("seed = 1\n" + deep + "a = 1\n");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("job.toml:2: holds more than 200 dots"), std::string::npos)
      << refused.error().message;
  // The most that the bounds allow is freed without harm.
  const std::string key = "{" + deep.substr(0, 2 * 200) + "a=[\n";
  std::string nested = "barrier = [\n";
  for (int i = 0; i < 127; ++i) nested += key;
  for (int i = 0; i < 127; ++i) nested += "]}\n";
  EXPECT_FALSE(read(nested + "]\n"));
}

TEST(JobFile, TakesWholeNumbersWhereNumbersAreAsked) {
  EXPECT_EQ(read("epochs = 3\n").value()[0].text, "3");
  EXPECT_EQ(read("seconds = 3\n").value()[0].text, "3");
  EXPECT_EQ(read("seconds = \"200ms\"\n").value()[0].text, "200ms");
  EXPECT_EQ(read("epochs = 2.5\n").value()[0].text, "2.5");
}

TEST(JobFile, OfEveryKeyGivesTheSameJobAsFlags) {
  for (const Key& key : job_keys()) {
    if (key.kind == KeyKind::flag) continue;
    // A value that no key takes shows that each is looked at under its own place.
    const Settings settings{{key.name, "\x01", "here"}};
    const auto job = make_job(settings, {});
    if (job) continue;  // names of files may be anything
    EXPECT_TRUE(job.error().message.starts_with("here: ")) << job.error().message;
  }
}

TEST(Overridden, ReplacesKeyByKeyAndTheChoiceOfTestsAsOne) {
  const Settings file{{"workers", "1", "a"}, {"holdout", "0.5", "b"}, {"straggler", "1:2x", "c"}};
  const Settings flags{{"test", "digits", "--test"}, {"straggler", "2:2x", "--straggler"}};
  const Settings both = overridden(file, flags);
  ASSERT_EQ(both.size(), 3U);
  EXPECT_EQ(both[0].key, "workers");
  EXPECT_EQ(both[1].key, "test");
  EXPECT_EQ(both[2].text, "2:2x");
}

}  // namespace
}  // namespace starling::program
