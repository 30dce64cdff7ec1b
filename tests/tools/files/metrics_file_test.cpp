#include "starling/tools/files/metrics_file.hpp"

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// A power failure may leave the beginning of a line.
TEST(MetricsFile, BeginsANewLineBehindOneWithoutItsEnd) {
  const Folder folder;
  folder.write("m", "{\"a\":1}\n{\"b\":");
  auto metrics = MetricsFile::open((folder.path() / "m").string(), true).value();
  ASSERT_TRUE(metrics.append("{}"));
  ASSERT_TRUE(metrics.append("{}"));
  EXPECT_EQ(folder.read("m"), "{\"a\":1}\n{\"b\":\n{}\n{}\n");
}

TEST(MetricsFile, AppendsIfAnotherProcessWritesTheFileOrEmptiesIt) {
  const Folder folder;
  const std::string path = (folder.path() / "m").string();
  auto first = MetricsFile::open(path, false).value();
  ASSERT_TRUE(first.append("one"));
  auto second = MetricsFile::open(path, true).value();
  ASSERT_TRUE(second.append("two"));
  ASSERT_TRUE(first.append("three"));
  EXPECT_EQ(folder.read("m"), "one\ntwo\nthree\n");
  std::filesystem::resize_file(path, 0);
  ASSERT_TRUE(first.append("four"));
  EXPECT_EQ(folder.read("m"), "four\n");
}

}  // namespace
}  // namespace starling::program
