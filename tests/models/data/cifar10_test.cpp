#include <gtest/gtest.h>

#include "starling/models/data/load.hpp"
#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

/// Returns a record: the label, then a plane of 1024 pixels for each colour. Each pixel of a plane
/// has the given value, except for the first, which has the value + 1.
std::string record(char label, char red, char green, char blue) {
  std::string bytes(1, label);
  for (const char value : {red, green, blue}) {
    bytes += static_cast<char>(value + 1);
    bytes += std::string(1023, value);
  }
  return bytes;
}

Result<Table> read(const std::vector<std::string>& files) {
  return load(Source{Cifar10Source{files}}, 1);
}

TEST(Cifar10, RowsArePixelsWithTheirChannelsLast) {
  const TemporaryFolder folder;
  const auto one = folder.write("1.bin", record(3, 10, 20, 30) + record(9, 0, 1, 2));
  const auto two = folder.write("2.bin.gz", gzip(record(0, 5, 5, 5)));
  const Table table = read({one, two}).value();
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.features(), 3072U);
  EXPECT_EQ(table.classes(), 10U);
  EXPECT_EQ(table.label(1), 9);
  const auto row = table.dense_row(0);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(row[c], static_cast<float>(10 * (c + 1) + 1) / 255);
    EXPECT_EQ(row[3 + c], static_cast<float>(10 * (c + 1)) / 255);
  }
  EXPECT_EQ(table.label(2), 0);
}

TEST(Cifar10, NamesFileAndRecordOfAnError) {
  const TemporaryFolder folder;
  const auto cut = folder.write("cut", record(3, 10, 20, 30) + "abc");
  EXPECT_EQ(message_of(read({cut})), cut + ": record 2 ends too early, after 3 of 3073 bytes");
  const auto bad = folder.write("bad", record(10, 1, 1, 1));
  EXPECT_EQ(message_of(read({bad})), bad + ": record 1 has the label 10; valid: 0 to 9");
  const auto empty = folder.write("empty", "");
  EXPECT_EQ(message_of(read({empty})), empty + ": is empty");
}

TEST(Cifar10, PrintsAllItsFiles) {
  EXPECT_EQ(Source::parse("cifar10:a.bin,b.bin").value().print(), "cifar10:a.bin,b.bin");
  std::string many = "cifar10:0.bin";
  for (int i = 1; i < 150; ++i) many += "," + std::to_string(i) + ".bin";
  EXPECT_EQ(Source::parse(many).value().print(), many);
  EXPECT_FALSE(Source::parse("cifar10"));
}

}  // namespace
}  // namespace starling::models
