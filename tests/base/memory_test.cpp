#include "starling/base/memory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "tests/sanitized.hpp"

namespace starling {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

/// A folder with a process's file of control groups, and with the groups.
class ControlGroups : public testing::Test {
 protected:
  ControlGroups() {
    std::string name = (std::filesystem::temp_directory_path() / "starling-groups-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~ControlGroups() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream{folder_ / name} << content;
  }
  [[nodiscard]] GroupMemory memory_of(const std::string& groups) const {
    write("groups", groups);
    return control_group_memory((folder_ / "groups").string(), (folder_ / "root").string());
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(ControlGroups, LeastLimitAboveAProcessApplies) {
  write("root/job/memory.max", "5000\n");
  write("root/job/memory.current", "4500\n");
  write("root/job/memory.stat", "anon 4000\ninactive_file 300\nactive_file 200\n");
  write("root/job/task/memory.max", "9000\n");
  write("root/job/task/memory.current", "1000\n");
  write("root/other/memory.max", "10\n");
  const GroupMemory allowed = memory_of("0::/job/task\n");
  EXPECT_EQ(allowed.total, 5000);
  EXPECT_EQ(allowed.free, 1000) << "files in the cache count as free";
  EXPECT_EQ(memory_of("0::/else\n").total, no_limit);
}

TEST_F(ControlGroups, OfVersion1HaveAFolderForMemory) {
  write("root/memory/job/memory.limit_in_bytes", "700\n");
  write("root/memory/job/memory.usage_in_bytes", "600\n");
  write("root/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
  const GroupMemory allowed = memory_of("9:name=systemd:/\n4:memory:/job\n1:cpu:/\n0::/\n");
  EXPECT_EQ(allowed.total, 700);
  EXPECT_EQ(allowed.free, 150);
}

TEST_F(ControlGroups, MayBeNamedByThePathOfTheHost) {
  write("root/memory.max", "800\n");
  EXPECT_EQ(memory_of("0::/docker/1234\n").total, 800);
}

TEST_F(ControlGroups, SetNoLimitIfTheySayMaxOrAreMissing) {
  write("root/job/memory.max", "max\n");
  EXPECT_EQ(memory_of("0::/job\n").free, no_limit);
  EXPECT_EQ(memory_of("").total, no_limit);
  EXPECT_EQ(memory_of("nonsense\n0:\n0::relative\n").total, no_limit);
}

TEST(Memory, ResidentBytesGrowByThePagesThatAreWritten) {
  if (sanitized) GTEST_SKIP() << "sanitizers take memory of their own for each page";
  constexpr double bytes = 64 << 20;
  const auto before = static_cast<double>(resident_bytes());
  const std::vector<char> written(64 << 20, 'x');
  EXPECT_NEAR(static_cast<double>(resident_bytes()) - before, bytes, bytes / 4) << written.back();
}

TEST(Memory, FreeMemoryIsNoMoreThanAllMemory) {
  EXPECT_GT(free_memory_bytes(), 1e6);
  EXPECT_LE(free_memory_bytes(), memory_bytes());
}

}  // namespace
}  // namespace starling
