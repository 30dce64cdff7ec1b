#include "starling/app/file_output.hpp"

#include "tests/app/program.hpp"

namespace starling::app {
namespace {

TEST(ReplaceFile, WritesAndReplacesAndLeavesNothingElse) {
  const Folder folder;
  const std::string path = (folder.path() / "f").string();
  ASSERT_TRUE(replace_file(path, "one"));
  ASSERT_TRUE(replace_file(path, "two, longer"));
  EXPECT_EQ(folder.read("f"), "two, longer");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(ReplaceFile, FollowsALink) {
  const Folder folder;
  folder.write("real", "old");
  std::filesystem::create_symlink("real", folder.path() / "link");
  ASSERT_TRUE(replace_file((folder.path() / "link").string(), "new"));
  EXPECT_EQ(folder.read("real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
}

TEST(ReplaceFile, FollowsLinksToWhatIsYetToBe) {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "far");
  std::filesystem::create_symlink("far/new", folder.path() / "near");
  std::filesystem::create_symlink("near", folder.path() / "link");
  ASSERT_TRUE(replace_file((folder.path() / "link").string(), "content"));
  EXPECT_EQ(folder.read("far/new"), "content");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"far", "link", "near"}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "near"));
}

TEST(ReplaceFile, RefusesLinksInACircle) {
  const Folder folder;
  std::filesystem::create_symlink("a", folder.path() / "b");
  std::filesystem::create_symlink("b", folder.path() / "a");
  const auto replaced = replace_file((folder.path() / "a").string(), "content");
  ASSERT_FALSE(replaced);
  EXPECT_NE(replaced.error().message.find("cannot be written"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "a"));
}

TEST(ReplaceFile, RefusesFoldersDevicesAndMissingFolders) {
  const Folder folder;
  EXPECT_NE(replace_file(folder.path().string(), "x").error().message.find("is a directory"),
            std::string::npos);
  EXPECT_NE(replace_file("/dev/null", "x").error().message.find("not a regular file"),
            std::string::npos);
  const auto missing = replace_file((folder.path() / "no" / "f").string(), "x");
  EXPECT_NE(missing.error().message.find("No such file"), std::string::npos);
  EXPECT_TRUE(folder.names().empty());
}

TEST(CheckWritable, LeavesNothingAndKeepsWhatIsThere) {
  const Folder folder;
  folder.write("old", "content");
  EXPECT_TRUE(check_writable((folder.path() / "new").string()));
  EXPECT_TRUE(check_writable((folder.path() / "old").string()));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"old"});
  EXPECT_EQ(folder.read("old"), "content");
  EXPECT_FALSE(check_writable(""));
}

}  // namespace
}  // namespace starling::app
