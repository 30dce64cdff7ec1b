#include "starling/models/table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

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

/// A model of a user's that reads rows of one form may be given a table of the other.
TEST(Table, HasNoRowsOfTheOtherForm) {
  const Table dense{1, 0, Table::Dense{{1, 2}}, {0, 2}};
  const Table sparse{2, 0, Table::Sparse{{0, 1}, {1}, {7}}, {1}};
  EXPECT_THROW((void)dense.sparse_row(1), std::logic_error);
  EXPECT_THROW((void)sparse.dense_row(0), std::logic_error);
}

TEST(Table, OfClassesHasALabellingOfClasses) {
  const Table dense{1, 3, Table::Dense{{1, 2}}, {0, 2}};
  EXPECT_EQ(dense.labelling.classes, 3U);
  EXPECT_EQ(dense.labelling.text(2), "2");
  EXPECT_EQ((Table{1, 2, Table::Sparse{}, {}}.labelling.classes), 2U);
  EXPECT_EQ((Table{1, 0, Table::Dense{{1}}, {7}}.labelling), Labelling{});
}

TEST(Table, RefusesLabelsThatAreNotClasses) {
  const auto refused = [](float label) {
    return !check_classes(Table{1, 3, Table::Dense{{1, 2}}, {0, label}}).ok();
  };
  EXPECT_FALSE(refused(2));
  for (const float label : {3.0F, -1.0F, 0.5F, std::nanf("")}) EXPECT_TRUE(refused(label)) << label;
}

}  // namespace
}  // namespace starling::models
