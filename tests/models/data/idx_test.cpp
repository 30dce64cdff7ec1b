#include <bit>

#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

/// Returns the lowest `bytes` bytes of `value`, the most significant first.
std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i)
    text += static_cast<char>(value >> (8U * static_cast<unsigned>(i)) & 0xffU);
  return text;
}

/// Returns an IDX file. `type` is the code of the elements' type.
std::string idx(int type, const std::vector<std::uint32_t>& sizes, const std::string& data) {
  std::string text{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const auto size : sizes) text += big_endian(size, 4);
  return text + data;
}

/// 3 images of 2 x 2 pixels, and their labels.
const std::string images = idx(8, {3, 2, 2}, std::string("\0\x33\xff\1\2\3\4\5\6\7\x08\x09", 12));
const std::string labels = idx(8, {3}, std::string("\0\2\1", 3));

class Idx : public testing::Test {
 protected:
  Result<Table> load_files(std::string_view x, std::string_view y) {
    images_ = folder_.write("images", x);
    labels_ = folder_.write("labels", y);
    return load(Source{IdxSource{images_, labels_}}, 1);
  }
  /// Returns the error of loading these files, with their paths replaced by X and Y.
  std::string error_of(std::string_view x, std::string_view y) {
    std::string text = message_of(load_files(x, y));
    for (const auto& [path, name] : {std::pair{images_, "X"}, std::pair{labels_, "Y"}})
      if (const auto at = text.find(path); at != std::string::npos)
        text.replace(at, path.size(), name);
    return text;
  }

  TemporaryFolder folder_;
  std::string images_;
  std::string labels_;
};

TEST_F(Idx, ScalesBytesToOne) {
  const Table table = load_files(images, labels).value();
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table.features(), 4U);
  EXPECT_EQ(table.classes(), 3U);
  EXPECT_EQ(table.dense_row(0)[0], 0);
  EXPECT_EQ(table.dense_row(0)[1], 0.2F);
  EXPECT_EQ(table.dense_row(0)[2], 1);
  EXPECT_EQ(table.dense_row(2)[3], 9.0F / 255);
  EXPECT_EQ(table.label(1), 2);
}

TEST_F(Idx, ReadsGzipByItsMagicEvenInSeveralMembers) {
  const Table plain = load_files(images, labels).value();
  const std::string halves = gzip(images.substr(0, 9)) + gzip(images.substr(9));
  const Table zipped = load_files(halves, gzip(labels)).value();
  ASSERT_EQ(zipped.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(zipped.dense_row(i), plain.dense_row(i)));
    EXPECT_EQ(zipped.label(i), plain.label(i));
  }
}

TEST_F(Idx, DoesNotScaleFloats) {
  std::string floats;
  std::string doubles;
  for (const float value : {-1.5F, 0.25F, 1e30F}) {
    floats += big_endian(std::bit_cast<std::uint32_t>(value), 4);
    doubles += big_endian(std::bit_cast<std::uint64_t>(static_cast<double>(value)), 8);
  }
  for (const std::string& file : {idx(0x0d, {3, 1}, floats), idx(0x0e, {3, 1}, doubles)}) {
    const Table table = load_files(file, labels).value();
    EXPECT_EQ(table.features(), 1U);
    EXPECT_EQ(table.dense_row(0)[0], -1.5F);
    EXPECT_EQ(table.dense_row(2)[0], 1e30F);
  }
}

TEST_F(Idx, MapsLabelsFromOneUpward) {
  const Table table = load_files(images, idx(8, {3}, "\1\2\3")).value();
  EXPECT_EQ(table.classes(), 3U);
  EXPECT_EQ(table.label(0), 0);
}

TEST_F(Idx, ReadsManyChunks) {
  const std::uint32_t rows = 300'000;
  std::string x;
  std::string y;
  for (std::uint32_t i = 0; i < rows; ++i) {
    x += static_cast<char>(i % 251);
    y += static_cast<char>(i % 7);
  }
  const Table table = load_files(gzip(idx(8, {rows, 1}, x)), gzip(idx(8, {rows}, y))).value();
  ASSERT_EQ(table.size(), rows);
  for (std::uint32_t i = 0; i < rows; ++i) {
    ASSERT_EQ(table.dense_row(i)[0], static_cast<float>(i % 251) / 255);
    ASSERT_EQ(table.label(i), static_cast<float>(i % 7));
  }
  EXPECT_LE(table.bytes(), std::size_t{rows} * 2 * sizeof(float) + 64);
}

TEST_F(Idx, RefusesDamagedImages) {
  const auto size = std::to_string(images.size());
  std::string damaged = gzip(images);
  damaged[damaged.size() - 8] ^= 1;
  std::string unknown = gzip(images);
  unknown[2] = 7;
  const std::string big(16, '\xff');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "X: the header ends too early, at byte 0"},
      {images.substr(0, 3), "X: the header ends too early, at byte 3"},
      {images.substr(0, 15), "X: the header ends too early, at byte 15"},
      {"P5 28 28 255", "X: is not an IDX file: it starts with 0x50 0x35, not with 0x00 0x00"},
      {std::string("\0\1\x08\3", 4),
       "X: is not an IDX file: it starts with 0x00 0x01, not with 0x00 0x00"},
      {idx(0x0c, {3, 1}, "123456789012"),
       "X: byte 2 gives the element type 0x0c; valid: 0x08 (uint8), 0x0d (float), 0x0e (double)"},
      {idx(0, {3, 1}, "123"),
       "X: byte 2 gives the element type 0x00; valid: 0x08 (uint8), 0x0d (float), 0x0e (double)"},
      {idx(8, {}, ""), "X: has 0 dimensions, but images have at least 2; is it the labels' file?"},
      {labels, "X: has 1 dimensions, but images have at least 2; is it the labels' file?"},
      {idx(8, {0, 2, 2}, ""), "X: has no elements: its shape is 0 x 2 x 2"},
      {idx(8, {3, 2, 0}, ""), "X: has no elements: its shape is 3 x 2 x 0"},
      {images.substr(0, images.size() - 1), "X: the data ends too early, at byte 27"},
      {images + "x", "X: holds more than its header promises, from byte " + size + " on"},
      {gzip(images + "xyz"), "X: holds more than its header promises, from byte " + size + " on"},
      {gzip(images.substr(0, 20)), "X: the data ends too early, at byte 20"},
      {idx(8, {4'000'000'000U, 28, 28}, big),
       "X: its header promises 4000000000 x 28 x 28 values of 1 bytes, but the file is too "
       "short for them"},
      {idx(8, {0xffffffffU, 0xffffffffU, 0xffffffffU}, big),
       "X: its header promises 4294967295 x 4294967295 x 4294967295 values of 1 bytes, "
       "but the file is too short for them"},
      {idx(0x0e, {3, 2}, big),
       "X: its header promises 3 x 2 values of 8 bytes, but the file is too short for them"},
      {gzip(idx(8, {4'000'000'000U, 28, 28}, big)),
       "X: its header promises 4000000000 x 28 x 28 values of 1 bytes, but the file is too "
       "short for them"},
      {idx(0x0d, {1, 2}, std::string("\0\0\0\0\x7f\x80\0\0", 8)),
       "X: value 2 is not a finite number that a float holds"},
      {idx(0x0d, {1, 1}, std::string("\x7f\xc0\0\0", 4)),
       "X: value 1 is not a finite number that a float holds"},
      {idx(0x0e, {1, 1}, big_endian(std::bit_cast<std::uint64_t>(1e39), 8)),
       "X: value 1 is not a finite number that a float holds"},
      {gzip(images).substr(0, 12), "X: its gzip data ends too early, at byte 12 of the file"},
      {damaged, "X: its gzip data is damaged near byte " + std::to_string(damaged.size() - 4) +
                    " of the file: incorrect data check"},
      {unknown, "X: its gzip data is damaged near byte 4 of the file: unknown compression method"},
      {gzip(images) + "junk", "X: its gzip data ends at byte " +
                                  std::to_string(gzip(images).size()) +
                                  " of the file, but other bytes follow"},
  };
  for (const auto& [content, message] : cases) EXPECT_EQ(error_of(content, labels), message);
}

TEST_F(Idx, RefusesLabelsThatDoNotFit) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "Y: the header ends too early, at byte 0"},
      {"\1\2", "Y: the header ends too early, at byte 2"},
      {images, "Y: has 3 dimensions, but labels have 1; is it the images' file?"},
      {idx(0x0d, {3}, std::string(12, '\0')),
       "Y: byte 2 gives the element type 0x0d; valid for labels: 0x08 (uint8)"},
      {idx(8, {0}, ""), "Y: has no elements: its shape is 0"},
      {idx(8, {100}, "\1"),
       "Y: its header promises 100 values of 1 bytes, but the file is too short for them"},
      {idx(8, {2}, std::string("\0\1", 2)), "X: holds 3 images, but Y holds 2 labels"},
      {idx(8, {4}, std::string("\0\1\2\3", 4)), "X: holds 3 images, but Y holds 4 labels"},
      {idx(8, {3}, "\5\5\5"),
       "Y: every label is 5, but a classification needs at least two classes"},
      {labels + labels, "Y: holds more than its header promises, from byte 11 on"},
      {gzip(labels).substr(0, 20), "Y: its gzip data ends too early, at byte 20 of the file"},
  };
  for (const auto& [content, message] : cases) EXPECT_EQ(error_of(images, content), message);
}

/// If one byte of the header is damaged, either the files are refused or all 3 rows are read.
TEST_F(Idx, SurvivesEveryDamagedByteOfItsHeader) {
  for (std::size_t at = 0; at < 16; ++at)
    for (int value = 0; value < 256; value += 15) {
      std::string damaged = images;
      damaged[at] = static_cast<char>(value);
      const auto result = load_files(damaged, labels);
      EXPECT_TRUE(!result || result->size() == 3) << at << " " << value;
    }
}

}  // namespace
}  // namespace starling::models
