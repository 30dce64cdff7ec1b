#include "starling/models/cuda/plugin.hpp"

#include <gtest/gtest.h>

namespace starling::models::cuda {
namespace {

TEST(Plugins, OfOtherBuildsDiffer) {
  const PluginBuild program{.version = "1.2.3", .commit = "abc"};
  EXPECT_EQ(program, (PluginBuild{.version = "1.2.3", .commit = "abc"}));
  EXPECT_NE(program, (PluginBuild{.version = "1.2.3", .commit = "abd"}));
  PluginBuild with_other_tables = program;
  with_other_tables.table_bytes += sizeof(void*);
  EXPECT_NE(program, with_other_tables);
}

}  // namespace
}  // namespace starling::models::cuda
