#include "starling/tools/program/line_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace starling::program {
namespace {

/// A pipe that takes only a page, so that it is soon full.
class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest() {
    EXPECT_EQ(::pipe(ends_), 0);
    EXPECT_GT(::fcntl(ends_[1], F_SETPIPE_SZ, 4096), 0);
  }
  ~LineWriterTest() override {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  /// Reads up to the end of what is written and will be.
  std::string read_all() {
    ::close(std::exchange(ends_[1], -1));
    std::string text;
    char block[4096];
    for (ssize_t count = 0; (count = ::read(ends_[0], block, sizeof block)) > 0;)
      text.append(block, static_cast<std::size_t>(count));
    return text;
  }

  int ends_[2] = {-1, -1};
};

TEST_F(LineWriterTest, WritesAllLinesInOrderBeforeItEnds) {
  std::string expected;
  {
    LineWriter writer{ends_[1]};
    for (int i = 0; i < 100; ++i) {
      writer.write(std::to_string(i));
      expected += std::to_string(i) + "\n";
    }
  }
  EXPECT_EQ(read_all(), expected);
}

TEST_F(LineWriterTest, DropsAndCountsLinesThatNobodyReads) {
  const int copy = ::dup(ends_[1]);
  auto writer = std::make_unique<LineWriter>(copy);
  const std::string line(100, 'x');
  for (std::size_t i = 0; i < 3 * LineWriter::waiting_max; ++i) writer->write(line);
  std::string text;
  const auto read_until = [&](const std::string& part) {
    char block[4096];
    while (text.find(part) == std::string::npos) {
      const ssize_t count = ::read(ends_[0], block, sizeof block);
      ASSERT_GT(count, 0);
      text.append(block, static_cast<std::size_t>(count));
    }
  };
  read_until(" lines dropped, because nobody read the output\n");
  writer->write("last");  // some lines were written, so there is room
  read_until("last\n");
  EXPECT_LT(std::ranges::count(text, 'x'), 100 * 2 * std::ptrdiff_t{LineWriter::waiting_max});
  writer.reset();
  ::close(copy);
}

}  // namespace
}  // namespace starling::program
