#include "starling/tools/files/safetensors.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/tools/program.hpp"

namespace starling::program::safetensors {
namespace {

class Safetensors : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "t") const {
    return (folder_.path() / name).string();
  }
  Folder folder_;
};

TEST_F(Safetensors, AreReadAsTheyWereWritten) {
  const std::vector<float> w{1.5F,
                             -0.0F,
                             3e-45F,
                             std::numeric_limits<float>::infinity(),
                             std::bit_cast<float>(0x7fc12345U),
                             6};
  const std::vector<double> scalar{-2.25};
  const std::vector<std::uint64_t> counts{UINT64_MAX, 0};
  const std::vector<View> tensors{view<float>("w", {2, 3}, w), view<double>("s", {}, scalar),
                                  view<std::uint64_t>("n", {2, 1}, counts),
                                  view<float>("none", {0, 7}, {})};
  const Metadata metadata{{"model", "mlp:2-3"}, {"note", "quotes \" and \xc3\xa4"}};
  ASSERT_TRUE(write(path(), metadata, tensors));
  const auto file = read(path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata, metadata);
  ASSERT_EQ(file->tensors.size(), 4U);
  for (const View& written : tensors) {
    const Tensor* tensor = file->find(written.name);
    ASSERT_NE(tensor, nullptr) << written.name;
    EXPECT_EQ(tensor->dtype, written.dtype);
    EXPECT_EQ(tensor->shape, written.shape);
    EXPECT_TRUE(std::ranges::equal(tensor->bytes, written.bytes)) << written.name;
  }
  EXPECT_EQ(file->find("x"), nullptr);
}

TEST_F(Safetensors, AreLaidOutAsTheFormatSays) {
  const std::vector<float> f{1};
  const std::vector<double> d{2};
  ASSERT_TRUE(write(path(), {}, std::vector{view<float>("f", {1}, f), view<double>("d", {1}, d)}));
  const std::string bytes = folder_.read("t");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U) << "tensors are aligned";
  EXPECT_EQ(bytes.substr(8, 1), "{");
  ASSERT_EQ(bytes.size(), 8 + length + 12);
  double wide = 0;
  std::memcpy(&wide, bytes.data() + 8 + length, 8);
  EXPECT_EQ(wide, 2) << "wide elements come first";
}

TEST_F(Safetensors, AreNotReplacedByOnesThatCannotBeRead) {
  const std::vector<float> w{1, 2, 3};
  ASSERT_TRUE(write(path(), {}, std::vector{view<float>("w", {3}, w)}));
  const std::string good = folder_.read("t");
  const auto refusal = [&](const Metadata& metadata, std::vector<std::uint64_t> shape) {
    const auto written =
        write(path(), metadata, std::vector{view<float>("w", std::move(shape), w)});
    return written ? "" : written.error().message;
  };
  EXPECT_EQ(refusal({}, {2, 2}),
            path() + ": is not written: tensor 'w' has 12 bytes, but its shape needs 16");
  EXPECT_EQ(refusal({}, {UINT64_MAX, 3}),
            path() + ": is not written: tensor 'w' has a shape of more bytes than can be counted");
  EXPECT_EQ(refusal({{"crc32", "x"}}, {3}),
            path() + ": metadata 'crc32': is the name of the file's checksum; valid: any other");
  EXPECT_EQ(folder_.read("t"), good);
}

TEST_F(Safetensors, EveryCutOffFileIsRefused) {
  const std::vector<float> w{1, 2, 3};
  ASSERT_TRUE(write(path(), {{"a", "b"}}, std::vector{view<float>("w", {3}, w)}));
  const std::string whole = folder_.read("t");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    folder_.write("cut", whole.substr(0, size));
    EXPECT_FALSE(read(path("cut"))) << size;
  }
  folder_.write("long", whole + "x");
  EXPECT_FALSE(read(path("long")));
}

/// The bits of a byte that the tests flip.
constexpr std::array<int, 4> bit_masks{1, 2, 16, 128};

/// Damages each byte in turn, except those of the key `crc32`: without the key, the file has no
/// checksum that could be wrong.
TEST_F(Safetensors, DamageIsNoticed) {
  const std::vector<float> w{1, 2, 3};
  ASSERT_TRUE(write(path(), {{"a", "b"}}, std::vector{view<float>("w", {3}, w)}));
  const std::string whole = folder_.read("t");
  const std::size_t name = whole.find("crc32");
  ASSERT_NE(name, std::string::npos);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int mask : bit_masks) {
      if (at >= name && at < name + 5) continue;
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      folder_.write("d", damaged);
      EXPECT_FALSE(read(path("d"))) << at << " by " << mask;
    }
}

/// Other tools write files without a checksum. `read` refuses such a file if it is damaged, or
/// returns some tensors; it must not crash.
TEST_F(Safetensors, DamageWithoutAChecksumDoesNotCrash) {
  const std::vector<float> w{1, 2, 3};
  ASSERT_TRUE(write(path(), {{"a", "b"}}, std::vector{view<float>("w", {3}, w)}));
  std::string whole = folder_.read("t");
  whole.replace(whole.find("crc32"), 5, "other");
  folder_.write("t", whole);
  ASSERT_TRUE(read(path()));
  int refused = 0;
  for (std::size_t at = 0; at < whole.size() - 12; ++at)
    for (const int mask : bit_masks) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      folder_.write("d", damaged);
      const auto file = read(path("d"));
      refused += file ? 0 : 1;
      if (!file) {
        EXPECT_TRUE(file.error().message.starts_with(path("d") + ": "));
      }
    }
  EXPECT_GT(refused, 100);
}

TEST_F(Safetensors, MetadataThatAreNotUtf8DoNotBreakTheChecksum) {
  const std::vector<float> w{1};
  ASSERT_TRUE(write(path(), {{"data", "csv:\xff.csv"}}, std::vector{view<float>("w", {1}, w)}));
  const auto file = read(path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata.at("data"), "csv:\xef\xbf\xbd.csv");
}

TEST(TensorName, IsNotValidIfAHeaderCannotHoldIt) {
  EXPECT_TRUE(is_valid_tensor_name("layer 1/\xc3\xa4\""));
  for (const char* name : {"", "__metadata__", "\xff"})
    EXPECT_FALSE(is_valid_tensor_name(name)) << name;
}

TEST_F(Safetensors, FoldersAndMissingFilesAreRefused) {
  EXPECT_NE(read(path("none")).error().message.find("no such file"), std::string::npos);
  EXPECT_NE(read(folder_.path().string()).error().message.find("is a folder, not a file"),
            std::string::npos);
}

}  // namespace
}  // namespace starling::program::safetensors
