/// Checks how training data is read from a safetensors file, and which files are refused with an
/// error that names the tensor and the sample.
#include "starling/tools/registry/safetensors_data.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/tools/files/safetensors_file.hpp"
#include "tests/tools/folder.hpp"

namespace starling::program {
namespace {

const RawTensor x_f32{"x", "F32", "[3,2]", bytes_of<float>({1, 2, 3, 4, 5, 6.5F})};
const RawTensor y_i64{"y", "I64", "[3]", bytes_of<std::int64_t>({0, 2, 1})};

class SafetensorsData : public testing::Test {
 protected:
  Result<models::Table> load(const std::string& content, const std::string& options = "") {
    folder_.write("d", content);
    return load_text("safetensors:" + path() + options);
  }
  static Result<models::Table> load_text(const std::string& text) {
    const Spec spec = Spec::parse(text).value();
    SpecReader read{spec};
    return load_safetensors(read);
  }
  [[nodiscard]] std::string path() const { return (folder_.path() / "d").string(); }
  Folder folder_;
};

std::vector<float> row(const models::Table& table, std::size_t i) {
  const auto values = table.dense_row(i);
  return {values.begin(), values.end()};
}

TEST_F(SafetensorsData, IsATableOfTheTensorsByEitherName) {
  for (const bool long_names : {false, true}) {
    RawTensor x = x_f32;
    RawTensor y = y_i64;
    if (long_names) {
      x.name = "features";
      y.name = "labels";
    }
    const RawTensor other{"mean", "F64", "[]", bytes_of<double>({1})};
    const auto table = load(file_of({y, other, x}));
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->size(), 3U);
    EXPECT_EQ(table->features(), 2U);
    EXPECT_EQ(table->classes(), 3U);
    EXPECT_EQ(row(*table, 2), (std::vector<float>{5, 6.5F}));
    EXPECT_EQ(table->label(1), 2);
  }
}

TEST_F(SafetensorsData, BytesBecomeZeroToOneAndImagesRows) {
  const RawTensor x{"x", "U8", "[2,1,2,2]", std::string{0, 51, 102, '\xff', 1, 2, 3, 4}};
  const RawTensor y{"y", "U8", "[2,1]", std::string{0, 1}};
  const auto table = load(file_of({x, y}));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(row(*table, 0), (std::vector<float>{0, 0.2F, 0.4F, 1}));
  EXPECT_EQ(table->classes(), 2U);
}

/// Whole numbers may be ids, which must not be scaled.
TEST_F(SafetensorsData, WholeNumbersStayWhole) {
  const RawTensor x{"x", "I64", "[3,2]", bytes_of<std::int64_t>({0, 300, -7, 1 << 24, 4, 5})};
  const auto table = load(file_of({x, y_i64}));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(row(*table, 0), (std::vector<float>{0, 300}));
  EXPECT_EQ(row(*table, 1), (std::vector<float>{-7, 16777216}));
}

TEST_F(SafetensorsData, ImagesHaveTheirColoursLast) {
  for (const char* shape : {"[3,2,2,3]", "[3,1,4,3]", "[3,3,4,1]", "[3,3,1,4]", "[3,12]"}) {
    const auto table = load(file_of({{"x", "U8", shape, std::string(36, 'a')}, y_i64}));
    ASSERT_TRUE(table) << shape << ": " << table.error().message;
    EXPECT_EQ(table->features(), 12U);
  }
}

/// A net would otherwise read images of 2x6 pixels as others of 12 numbers.
TEST_F(SafetensorsData, ImagesHaveTheHeightAndWidthOfTheTensor) {
  const auto image = [&](const char* shape) {
    return load(file_of({{"x", "U8", shape, std::string(36, 'a')}, y_i64})).value().image;
  };
  EXPECT_EQ(image("[3,2,2,3]"), (std::vector<std::size_t>{2, 2, 3}));
  EXPECT_EQ(image("[3,2,6,1]"), (std::vector<std::size_t>{2, 6, 1}));
  EXPECT_EQ(image("[3,2,6]"), (std::vector<std::size_t>{2, 6, 1}));
  EXPECT_EQ(image("[3,1,2,6]"), std::vector<std::size_t>{});
  EXPECT_EQ(image("[3,12]"), std::vector<std::size_t>{});
}

/// A test file may hold only some of the classes, but its label 1 still means class 1.
TEST_F(SafetensorsData, WholeLabelsAreClassesFromZeroOn) {
  const RawTensor ones{"y", "I32", "[3]", bytes_of<std::int32_t>({1, 1, 1})};
  const auto table = load(file_of({x_f32, ones}));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->label(0), 1);
  EXPECT_EQ(table->classes(), 2U);
}

TEST_F(SafetensorsData, TaskOverridesTheLabelsType) {
  const auto values = load(file_of({x_f32, y_i64}), ",task=value");
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values->classes(), 0U);
  EXPECT_EQ(values->label(1), 2);
  const RawTensor real{"y", "F64", "[3]", bytes_of<double>({0.5, 1.5, 2})};
  EXPECT_EQ(load(file_of({x_f32, real})).value().classes(), 0U);
  const RawTensor whole{"y", "F32", "[3]", bytes_of<float>({1, 2, 3})};
  EXPECT_EQ(load(file_of({x_f32, whole})).value().classes(), 0U);
  const auto classes = load(file_of({x_f32, whole}), ",task=class").value();
  EXPECT_EQ(classes.classes(), 4U);
  EXPECT_EQ(classes.label(0), 1);
  const auto between = load(file_of({x_f32, real}), ",task=class");
  ASSERT_FALSE(between);
  EXPECT_NE(between.error().message.find("sample 1 has the label 0.5; valid: classes 0 to 999999"),
            std::string::npos)
      << between.error().message;
}

TEST_F(SafetensorsData, EveryCutOffFileIsRefused) {
  const std::string whole = file_of({x_f32, y_i64});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(load(whole.substr(0, size))) << size;
  EXPECT_TRUE(load(whole));
}

/// Tensors that do not make a table, and a part of the error message.
struct RefusedTensors {
  std::vector<RawTensor> tensors;
  std::string error_part;
};

TEST_F(SafetensorsData, TensorsThatDoNotFitAreRefusedWithTensorAndSample) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = [](const char* dtype, const char* shape, std::string bytes) {
    return RawTensor{"x", dtype, shape, std::move(bytes)};
  };
  const auto y = [](const char* dtype, const char* shape, std::string bytes) {
    return RawTensor{"y", dtype, shape, std::move(bytes)};
  };
  const std::vector<RefusedTensors> cases{
      {{}, "has no tensor 'features' or 'x'; it has: none"},
      {{{"w", "U8", "[1]", "a"}, y_i64}, "has no tensor 'features' or 'x'; it has: 'w', 'y'"},
      {{x_f32}, "has no tensor 'labels' or 'y'; it has: 'x'"},
      {{x_f32, y_i64, {"labels", "U8", "[3]", std::string(3, '\0')}},
       "has a tensor 'labels' and a tensor 'y'; valid: one of them"},
      {{x("F32", "[6]", x_f32.bytes), y_i64}, "'x' is F32 [6]; valid: [n, ...]"},
      {{x("I64", "[3,1]", bytes_of<std::int64_t>({1, 2, (1 << 24) + 1})), y_i64},
       "tensor 'x': sample 3 holds a number that is not finite or that a float cannot hold"},
      {{x("I64", "[3,1]", bytes_of<std::int64_t>({1, INT64_MAX, 3})), y_i64},
       "tensor 'x': sample 2 holds a number that is not finite or that a float cannot hold"},
      {{x("U8", "[3,3,2,2]", std::string(36, 'a')), y_i64},
       "'x' is U8 [3, 3, 2, 2]; it looks like images with the channels first; valid: [n, height, "
       "width, "},
      {{x("F32", "[0,2]", ""), y_i64}, "'x' is F32 [0, 2]; it holds no samples"},
      {{x("F32", "[3,0]", ""), y_i64}, "'x' is F32 [3, 0]; valid: 1 to 2147483648 numbers"},
      {{x_f32, y("U8", "[2]", "ab")}, "'y' is U8 [2]; but 'x' holds 3 samples"},
      {{x_f32, y("U8", "[1,3]", "abc")}, "'y' is U8 [1, 3]; valid: [n] or [n, 1]"},
      {{x_f32, y("U8", "[]", "a")}, "'y' is U8 []; valid: [n] or [n, 1]"},
      {{x("F32", "[3,2]", bytes_of<float>({1, 2, 3, nan, 5, 6})), y_i64},
       "tensor 'x': sample 2 holds a number that is not finite"},
      {{x("F64", "[3,2]", bytes_of<double>({1, 2, 3, 4, 5, 1e300})), y_i64},
       "tensor 'x': sample 3 holds a number that is not finite"},
      {{x_f32, y("I64", "[3]", bytes_of<std::int64_t>({0, -1, 1}))},
       "tensor 'y': sample 2 has the label -1; valid: classes 0 to 999999, or task=value"},
      {{x_f32, y("U64", "[3]", bytes_of<std::uint64_t>({0, 1, UINT64_MAX}))},
       "tensor 'y': sample 3 has the label"},
      {{x_f32, y("F32", "[3]", bytes_of<float>({0, nan, 1}))}, "tensor 'y': sample 2 holds"},
      {{x("BF16", "[3,2]", std::string(12, '\0')), y_i64}, "valid: F32, F64, U64, U8, I32, I64"}};
  for (const RefusedTensors& refused : cases) {
    const auto table = load(file_of(refused.tensors));
    ASSERT_FALSE(table) << refused.error_part;
    EXPECT_TRUE(table.error().message.starts_with(path() + ": ")) << table.error().message;
    EXPECT_NE(table.error().message.find(refused.error_part), std::string::npos)
        << refused.error_part << "\nis not in\n"
        << table.error().message;
  }
}

TEST_F(SafetensorsData, OptionsAreChecked) {
  EXPECT_NE(load_text("safetensors").error().message.find("names no file"), std::string::npos);
  const auto task = load_text("safetensors:f,task=clas");
  EXPECT_NE(task.error().message.find("did you mean 'class'?"), std::string::npos);
  const auto option = load_text("safetensors:f,tsak=class");
  EXPECT_NE(option.error().message.find("unknown option 'tsak'"), std::string::npos);
  EXPECT_NE(load_text("safetensors:" + path()).error().message.find("no such file"),
            std::string::npos);
}

}  // namespace
}  // namespace starling::program
