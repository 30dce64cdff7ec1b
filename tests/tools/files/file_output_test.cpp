#include "starling/tools/files/file_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tools/program.hpp"

namespace starling::program {
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

TEST(ReplaceFile, FollowsLinksToAFileThatDoesNotExistYet) {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "far");
  std::filesystem::create_symlink("far/new", folder.path() / "near");
  std::filesystem::create_symlink("near", folder.path() / "link");
  ASSERT_TRUE(replace_file((folder.path() / "link").string(), "content"));
  EXPECT_EQ(folder.read("far/new"), "content");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"far", "link", "near"}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "near"));
}

TEST(ReplaceFile, KeepsThePermissionsOfTheOldFile) {
  const Folder folder;
  const std::string path = (folder.path() / "f").string();
  for (const unsigned mode : {0600U, 0640U, 0666U}) {
    folder.write("f", "old");
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
    ASSERT_TRUE(replace_file(path, "new"));
    EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(path).permissions()), mode);
    std::filesystem::remove(path);
  }
}

/// Each writer also looks for files that killed writers of the same path have left.
TEST(ReplaceFile, SucceedsForManyConcurrentWriters) {
  const Folder folder{"/dev/shm"};  // there, fsync() takes no time
  const std::string path = (folder.path() / "f").string();
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool is_written = true;
      for (int k = 0; k < 5000 && is_written; ++k) is_written = replace_file(path, "x").ok();
      ::_exit(is_written ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
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

TEST(CheckWritable, LeavesNothingBehindAndKeepsAnExistingFile) {
  const Folder folder;
  folder.write("old", "content");
  EXPECT_TRUE(check_writable((folder.path() / "new").string()));
  EXPECT_TRUE(check_writable((folder.path() / "old").string()));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"old"});
  EXPECT_EQ(folder.read("old"), "content");
  EXPECT_FALSE(check_writable(""));
}

TEST(CreateSecretFile, IsReadableByItsOwnerOnlyWithAnyUmask) {
  const Folder folder;
  const std::string path = (folder.path() / "f").string();
  const auto before = ::umask(0);
  const auto created = create_secret_file(path, "secret");
  ::umask(before);
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(folder.read("f"), "secret");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(CreateSecretFile, NeverOverwritesNorFollowsALink) {
  const Folder folder;
  folder.write("old", "content");
  std::filesystem::create_symlink("nowhere", folder.path() / "link");
  for (const char* name : {"old", "link"}) {
    const std::string path = (folder.path() / name).string();
    const std::string expected = path + ": is there already, and keys are never overwritten";
    for (const auto& refused : {create_secret_file(path, "secret"), check_new(path)}) {
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.error().message.find(expected), std::string::npos)
          << refused.error().message;
    }
  }
  EXPECT_EQ(folder.read("old"), "content");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"link", "old"}));
}

/// The first file is written before the forks, so that the writers inherit all that a process keeps
/// from one file to the next.
TEST(CreateSecretFile, SucceedsForOneOfManyConcurrentWriters) {
  const Folder folder;
  ASSERT_TRUE(replace_file((folder.path() / "other").string(), "x"));
  const std::string path = (folder.path() / "f").string();
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0)
      ::_exit(create_secret_file(path, std::string(1, static_cast<char>('a' + i))) ? 1 : 0);
    children.push_back(child);
  }
  int successful_writers = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    successful_writers += WEXITSTATUS(status);
  }
  EXPECT_EQ(successful_writers, 1);
  EXPECT_EQ(folder.read("f").size(), 1U);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"f", "other"}));
}

/// A killed process leaves its temporary file; the next writer removes it. A running process holds
/// a lock on its temporary file, which therefore stays.
TEST(FileOutput, RemovesTemporaryFilesOfKilledProcesses) {
  const Folder folder;
  for (const char* name : {"m.starling-1.tmp", "m.starling-999999999.tmp"}) folder.write(name, "x");
  for (const char* other : {"m.starling-.tmp", "m.starling-1x.tmp", "m.starling-1.tmp2",
                            "n.starling-1.tmp", "am.starling-1.tmp", "m.tmp"})
    folder.write(other, "x");
  std::filesystem::create_symlink("m.tmp", folder.path() / "m.starling-2.tmp");
  folder.write("m.starling-7.tmp", "y");
  const int locked_file = ::open((folder.path() / "m.starling-7.tmp").c_str(), O_WRONLY);
  ASSERT_EQ(::flock(locked_file, LOCK_EX), 0);
  ASSERT_TRUE(replace_file((folder.path() / "m").string(), "new"));
  EXPECT_EQ(folder.read("m"), "new");
  EXPECT_FALSE(folder.has("m.starling-1.tmp"));
  EXPECT_FALSE(folder.has("m.starling-999999999.tmp"));
  for (const char* other : {"m.starling-.tmp", "m.starling-1x.tmp", "m.starling-1.tmp2",
                            "n.starling-1.tmp", "am.starling-1.tmp", "m.tmp", "m.starling-2.tmp"})
    EXPECT_TRUE(folder.has(other)) << other;
  EXPECT_TRUE(folder.has("m.starling-7.tmp")) << "its writer runs and holds the lock";
  ::close(locked_file);
  ASSERT_TRUE(replace_file((folder.path() / "m").string(), "newer"));
  EXPECT_FALSE(folder.has("m.starling-7.tmp"));
}

/// The inner folder takes the place of `first`, which was registered before the outer one.
TEST(DiscardUnfinished, RemovesNestedFoldersInAnyOrderOfTheirPlaces) {
  const Folder folder;
  const std::string first = (folder.path() / "first").string();
  const std::string outer = (folder.path() / "outer").string();
  const std::string inner = (folder.path() / "outer" / "inner").string();
  add_unfinished_folder(first);
  add_unfinished_folder(outer);
  forget_unfinished_folder(first);
  add_unfinished_folder(inner);
  std::filesystem::create_directories(inner);
  discard_unfinished();
  EXPECT_TRUE(folder.names().empty());
  forget_unfinished_folder(outer);
  forget_unfinished_folder(inner);
}

TEST(DiscardUnfinished, KeepsFoldersThatAreNotEmpty) {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "outer" / "inner");
  folder.write("outer/file", "x");
  for (const char* name : {"outer", "outer/inner"})
    add_unfinished_folder((folder.path() / name).string());
  discard_unfinished();
  EXPECT_TRUE(folder.has("outer/file"));
  EXPECT_FALSE(folder.has("outer/inner"));
  for (const char* name : {"outer", "outer/inner"})
    forget_unfinished_folder((folder.path() / name).string());
}

/// A secret must not stay in a file that nobody knows of.
TEST(CreateSecretFile, RemovesTemporaryFilesOfKilledProcesses) {
  const Folder folder;
  folder.write("n.key.starling-1.tmp", "secret");
  ASSERT_TRUE(create_secret_file((folder.path() / "n.key").string(), "another"));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"n.key"});
}

/// In another container, a process may have the same id.
TEST(ReplaceFile, LeavesTheTemporaryFileOfAProcessWithTheSameId) {
  const Folder folder;
  const std::string other = "m.starling-" + std::to_string(::getpid()) + ".tmp";
  folder.write(other, "x");
  const int locked = ::open((folder.path() / other).c_str(), O_WRONLY);
  ASSERT_EQ(::flock(locked, LOCK_EX), 0);
  ASSERT_TRUE(replace_file((folder.path() / "m").string(), "y"));
  EXPECT_EQ(folder.read(other), "x");
  ::close(locked);
}

}  // namespace
}  // namespace starling::program
