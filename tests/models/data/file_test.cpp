#include "starling/models/data/file.hpp"

#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

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

TEST(InputFile, RefusesWhatCannotBeOpened) {
  const TemporaryFolder folder;
  const std::string absent = folder.path("absent");
  EXPECT_EQ(message_of(load_text("csv:" + absent)),
            "cannot open '" + absent + "': No such file or directory");
  EXPECT_EQ(message_of(load_text("libsvm:" + absent)),
            "cannot open '" + absent + "': No such file or directory");
  EXPECT_EQ(message_of(load_text("idx:" + absent + ",b")),
            "cannot open '" + absent + "': No such file or directory");
  EXPECT_EQ(message_of(load_text("csv:" + folder.path(""))),
            folder.path("") + ": is a folder, not a file");
}

TEST(InputFile, BoundsWhatAFileCanHold) {
  const TemporaryFolder folder;
  const std::string zipped = gzip(std::string(100'000, 'a'));
  EXPECT_EQ(InputFile::open(folder.write("a", "12345"))->content_max(), 5U);
  const auto file = InputFile::open(folder.write("b", zipped));
  EXPECT_EQ(file->content_max(), zipped.size() * 1032);
  EXPECT_GE(file->content_max(), 100'000U);
}

TEST(LineReader, EndsLinesAtEitherMark) {
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

TEST(LineReader, ReportsDamageBehindGoodLines) {
  const TemporaryFolder folder;
  const std::string zipped = gzip("a\nb\n");
  const std::string path = folder.write("a", zipped.substr(0, zipped.size() - 3));
  EXPECT_EQ(read_lines(path), path + ": its gzip data ends too early, at byte " +
                                  std::to_string(zipped.size() - 3) + " of the file");
}

}  // namespace
}  // namespace starling::models
