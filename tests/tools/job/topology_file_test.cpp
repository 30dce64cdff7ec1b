#include "starling/tools/job/topology_file.hpp"

#include <gtest/gtest.h>

#include "tests/tools/folder.hpp"

namespace starling::program {
namespace {

TEST(TopologyFile, GivesWayToItsLinks) {
  const Folder folder;
  folder.write("links.txt", "0 1 2\n2 1 # one lane\n");
  const std::string file = (folder.path() / "links.txt").string();
  EXPECT_EQ(with_links("allreduce:trees:" + file).value(), "allreduce:trees:0-1x2+1-2");
  EXPECT_EQ(with_links("allreduce:trees:" + file + ",overlap").value(),
            "allreduce:trees:0-1x2+1-2,overlap");
  for (const std::string other : {"allreduce", "allreduce:overlap", "allreduce:ring,overlap",
                                  "allreduce:trees:0-1", "gossip:lag=1", "owners"})
    EXPECT_EQ(with_links(other).value(), other);
}

TEST(TopologyFile, ThatIsMissingOrBadIsRefused) {
  const Folder folder;
  folder.write("bad.txt", "0 1\n0 x\n");
  const auto bad = with_links("allreduce:trees:" + (folder.path() / "bad.txt").string());
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("bad.txt:2: member 'x'"), std::string::npos)
      << bad.error().message;
  const auto gone = with_links("allreduce:trees:" + (folder.path() / "gone.txt").string());
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("gone.txt"), std::string::npos) << gone.error().message;
}

}  // namespace
}  // namespace starling::program
