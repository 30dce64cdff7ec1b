#include "starling/models/table.hpp"

#include <gtest/gtest.h>

namespace starling::models {
namespace {

TEST(Table, SelectsRowsOfADenseTableInOrder) {
  const Table table{2, 0, Table::Dense{{1, 2, 3, 4, 5, 6}}, {10, 20, 30}};
  const std::vector<std::uint32_t> rows{2, 0, 2};
  const Table chosen = table.select(rows);
  ASSERT_EQ(chosen.size(), 3U);
  EXPECT_EQ(chosen.dense_row(0)[1], 6);
  EXPECT_EQ(chosen.dense_row(1)[0], 1);
  EXPECT_EQ(chosen.label(2), 30);
}

TEST(Table, SelectsRowsOfASparseTableInOrder) {
  const Table table{5, 2, Table::Sparse{{0, 2, 2, 3}, {1, 4, 0}, {7, 8, 9}}, {0, 1, 1}};
  const std::vector<std::uint32_t> rows{2, 1, 0};
  const Table chosen = table.select(rows);
  ASSERT_TRUE(chosen.is_sparse());
  EXPECT_EQ(chosen.entries(), 3U);
  EXPECT_EQ(chosen.sparse_row(0).values[0], 9);
  EXPECT_TRUE(chosen.sparse_row(1).columns.empty());
  EXPECT_EQ(chosen.sparse_row(2).columns[1], 4U);
  EXPECT_EQ(chosen.classes(), 2U);
}

}  // namespace
}  // namespace starling::models
