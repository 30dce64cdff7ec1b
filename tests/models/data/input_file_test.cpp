#include "starling/models/data/formats/input_file.hpp"

#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

/// Returns the lines of the file, each followed by `|`, or the error of the first line that cannot
/// be read.
std::string read_lines(const std::string& path) {
  LineReader reader{InputFile::open(path).value()};
  std::string text;
  while (true) {
    const auto line = reader.next();
    if (!line) return line.error().message;
    if (!*line) return text;
    text += std::string{**line} + "|";
  }
}

TEST(InputFile, RefusesPathsThatCannotBeOpened) {
  const TemporaryFolder folder;
  const std::string absent = folder.path("absent");
  EXPECT_EQ(message_of(load_text("csv:" + absent)), absent + ": no such file");
  EXPECT_EQ(message_of(load_text("libsvm:" + absent)), absent + ": no such file");
  EXPECT_EQ(message_of(load_text("idx:" + absent + ",b")), absent + ": no such file");
  EXPECT_EQ(message_of(load_text("csv:" + folder.path(""))),
            folder.path("") + ": is a folder, not a file");
}

TEST(InputFile, BoundsTheContentOfAFile) {
  const TemporaryFolder folder;
  const std::string zipped = gzip(std::string(100'000, 'a'));
  EXPECT_EQ(InputFile::open(folder.write("a", "12345"))->content_max(), 5U);
  const auto file = InputFile::open(folder.write("b", zipped));
  EXPECT_EQ(file->content_max(), zipped.size() * 1032);
  EXPECT_GE(file->content_max(), 100'000U);
}

TEST(LineReader, EndsLinesAtLfAndCrLf) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_lines(folder.write("a", "")), "");
  EXPECT_EQ(read_lines(folder.write("a", "\n")), "|");
  EXPECT_EQ(read_lines(folder.write("a", "x\ny\r\n\nz")), "x|y||z|");
  EXPECT_EQ(read_lines(folder.write("a", "x\n")), "x|");
  EXPECT_EQ(read_lines(folder.write("a", "\xef\xbb\xbfx\ny")), "x|y|");
}

TEST(LineReader, JoinsLinesAcrossChunks) {
  const TemporaryFolder folder;
  std::string text;
  std::string expected;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::string line(i * i * 700, static_cast<char>('a' + i % 26));
    text += line + "\r\n";
    expected += line + "|";
  }
  EXPECT_EQ(read_lines(folder.write("a", text)), expected);
  EXPECT_EQ(read_lines(folder.write("b", gzip(text))), expected);
}

TEST(LineReader, ReportsDamageAfterGoodLines) {
  const TemporaryFolder folder;
  const std::string zipped = gzip("a\nb\n");
  const std::string path = folder.write("a", zipped.substr(0, zipped.size() - 3));
  EXPECT_EQ(read_lines(path), path + ": its gzip data ends too early, at byte " +
                                  std::to_string(zipped.size() - 3) + " of the file");
}

/// Limits the memory of each source to 1 MiB.
class MemoryLimit : public testing::Test {
 protected:
  static ReadLimits limits() {
    ReadLimits limits;
    limits.memory_max = 1U << 20U;
    return limits;
  }

  const TemporaryFolder folder_;
  const ReadScope scope_{limits()};
};

std::string repeated(const std::string& line, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += line;
  return text;
}

/// Expects that loading `source` fails because of the memory limit. `name` is the source in the
/// message.
void expect_refused(const std::string& source, const std::string& name, const std::string& reason) {
  const std::string message = message_of(load_text(source));
  EXPECT_TRUE(message.starts_with(name + ": " + reason)) << message;
  EXPECT_TRUE(message.ends_with(" GB of memory; valid: up to 0.001 GB")) << message;
}

TEST_F(MemoryLimit, RefusesDataAboveTheLimit) {
  const auto csv = folder_.write("csv", gzip(repeated("1,2,3,0\n4,5,6,1\n", 200'000)));
  expect_refused("csv:" + csv, csv, "takes more than 0.001");
  const auto libsvm = folder_.write("libsvm", gzip(repeated("1 1:1 2:1\n0\n", 100'000)));
  expect_refused("libsvm:" + libsvm, libsvm, "takes more than 0.001");
  const auto cifar10 = folder_.write("cifar10", gzip(std::string(3073 * 1000, '\0')));
  expect_refused("cifar10:" + cifar10, cifar10, "takes more than 0.001");
  const auto plain = folder_.write("plain", std::string(3073 * 1000, '\0'));
  expect_refused("cifar10:" + plain, plain, "would take 0.012");
  const std::string header{"\0\0\x08\x02\0\0\x03\xe8\0\0\x03\xe8", 12};
  const auto idx = folder_.write("idx", gzip(header + std::string(1'000'000, '\0')));
  expect_refused("idx:" + idx + "," + idx, idx, "would take 0.004");
  const auto line = folder_.write("line", gzip(std::string(20'000'000, ' ')));
  expect_refused("csv:" + line, line, "takes more than 0.00");
  for (const std::string generated : {"digits:n=1000", "linear:d=1000,n=1000,noise=0.1",
                                      "ratings:users=500,items=400,rank=8,n=1000000,noise=0.1"})
    expect_refused(generated, generated, "would take 0.0");
}

TEST_F(MemoryLimit, ReadsDataBelowTheLimit) {
  EXPECT_TRUE(load_text("digits:n=100"));
  const auto csv = folder_.write("csv", repeated("1,2,3,0\n4,5,6,1\n", 1000));
  EXPECT_TRUE(load_text("csv:" + csv));
}

TEST(InputFile, StopsReadingAtTheDeadline) {
  const TemporaryFolder folder;
  // Blank lines take no memory, so only the deadline can stop the reading of this file.
  const auto blank = folder.write("blank", gzip(repeated("\n", 30'000'000)));
  ReadLimits limits;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds{20};
  const ReadScope scope{limits};
  EXPECT_EQ(message_of(load_text("libsvm:" + blank)), blank + ": reading took too long");
}

}  // namespace
}  // namespace starling::models
