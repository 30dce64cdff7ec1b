#include "starling/models/data/describe.hpp"

#include <gtest/gtest.h>

namespace starling::models {
namespace {

TEST(Describe, SumsUpADenseTable) {
  const Table table{2, 3, Table::Dense{{0, -1, 2, 0, 4, 1}}, {2, 0, 2}};
  const Description d = describe(table);
  EXPECT_EQ(d.rows, 3U);
  EXPECT_EQ(d.features, 2U);
  EXPECT_FALSE(d.sparse);
  EXPECT_EQ(d.entries, 6U);
  EXPECT_DOUBLE_EQ(d.density, 4.0 / 6);
  EXPECT_EQ(d.value_min, -1);
  EXPECT_EQ(d.value_max, 4);
  EXPECT_EQ(d.value_mean, 1);
  EXPECT_EQ(d.label_min, 0);
  EXPECT_EQ(d.label_max, 2);
  EXPECT_EQ(d.class_counts, (std::vector<std::size_t>{1, 0, 2}));
  EXPECT_EQ(d.bytes, table.bytes());
}

TEST(Describe, SumsUpTheStoredEntriesOfASparseTable) {
  const Table table{10, 0, Table::Sparse{{0, 2, 2, 3}, {1, 4, 0}, {7, 8, 0}}, {-1.5F, 2, 4}};
  const Description d = describe(table);
  EXPECT_TRUE(d.sparse);
  EXPECT_EQ(d.entries, 3U);
  EXPECT_DOUBLE_EQ(d.density, 2.0 / 30);
  EXPECT_EQ(d.value_min, 0);
  EXPECT_EQ(d.value_max, 8);
  EXPECT_EQ(d.value_mean, 5);
  EXPECT_EQ(d.label_min, -1.5);
  EXPECT_EQ(d.label_mean, 1.5);
  EXPECT_TRUE(d.class_counts.empty());
}

TEST(Describe, AcceptsAnEmptyTable) {
  const Description d = describe(Table{});
  EXPECT_EQ(d.rows, 0U);
  EXPECT_EQ(d.density, 0);
  EXPECT_EQ(d.value_mean, 0);
}

}  // namespace
}  // namespace starling::models
