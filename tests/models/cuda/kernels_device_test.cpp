// Tests kernels that the tests of layers do not cover separately: sums, transposition, updates,
// compression.
#include "starling/models/cuda/columns.hpp"
#include "starling/models/cuda/training/device_compress.hpp"
#include "starling/models/cuda/training/device_update.hpp"
#include "tests/models/cuda/device.hpp"
#include "tests/models/cuda/layers.hpp"

namespace starling::models::cuda {
namespace {

DeviceArray<float> to_device(const std::vector<float>& from) {
  DeviceArray<float> to{from.size()};
  check(cudaMemcpy(to.data(), from.data(), to.bytes(), cudaMemcpyHostToDevice), "copying");
  finish_default_stream();
  return to;
}

std::vector<float> to_host(const Context& context, const float* from, std::size_t size) {
  context.stream().finish();
  std::vector<float> to(size);
  check(cudaMemcpy(to.data(), from, size * sizeof(float), cudaMemcpyDeviceToHost), "copying");
  return to;
}

/// A matrix whose columns are summed over groups of `group_rows` rows.
struct Sizes {
  Index rows, columns, group_rows;
};

void PrintTo(const Sizes& s, std::ostream* out) {
  *out << s.rows << "x" << s.columns << " in " << s.group_rows;
}

class Matrices : public testing::TestWithParam<Sizes> {};

TEST_P(Matrices, AreSummedByColumnsAndTransposed) {
  STARLING_NEEDS_DEVICE();
  use_device(0);
  Context context{Precision::float32};
  const auto [rows, columns, group_rows] = GetParam();
  const Groups groups{rows, columns, group_rows};
  const auto x = normals(std::size_t{rows} * columns, 1);
  const auto device_x = to_device(x);
  context.reserve_scratch(column_scratch_bytes(groups));
  const std::size_t size = std::size_t{groups.count()} * columns;
  const auto device_sums = to_device(std::vector<float>(size, 1.0F));
  sum_columns(context, groups, device_x.data(), true, device_sums.data());
  std::vector<float> expected(size, 1.0F);
  {
    std::vector<double> sums(size, 1.0);
    for (Index i = 0; i < rows * columns; ++i)
      sums[groups.statistic_of(i)] += static_cast<double>(x[i]);
    for (std::size_t i = 0; i < size; ++i) expected[i] = static_cast<float>(sums[i]);
  }
  const auto actual = to_host(context, device_sums.data(), size);
  for (std::size_t i = 0; i < size; ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-5 * std::sqrt(static_cast<double>(rows)) + 1e-5) << i;

  const DeviceArray<float> device_transpose{x.size()};
  transpose(context, rows, columns, device_x.data(), false, device_transpose.data());
  const auto transposed = to_host(context, device_transpose.data(), x.size());
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      ASSERT_EQ(transposed[std::size_t{j} * rows + i], x[std::size_t{i} * columns + j]);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Matrices,
                         testing::Values(Sizes{1, 1, 1}, Sizes{5, 3, 5}, Sizes{33, 31, 33},
                                         Sizes{1000, 6, 256}, Sizes{5000, 16, 700},
                                         Sizes{100'000, 32, 100'000}, Sizes{300, 130, 256},
                                         Sizes{64, 1000, 64}));

TEST(Compression, SendsTheSameAsTheHost) {
  STARLING_NEEDS_DEVICE();
  use_device(0);
  const Context context{Precision::float32};
  for (const std::size_t size : {1U, 1023U, 1024U, 300'000U})
    for (const auto form : {Threshold::Form::values, Threshold::Form::signs}) {
      const Threshold threshold{.threshold = 1.5F, .form = form};
      DeviceCompressor compressor{threshold, size};
      std::vector<float> residual(size);
      for (std::uint64_t round = 1; round <= 3; ++round) {
        const auto g = normals(size, round);
        const auto device_g = to_device(g);
        ASSERT_EQ(compressor.compress(context, device_g.data()), compress(threshold, g, residual))
            << size << " elements, round " << round;
        ASSERT_EQ(to_host(context, compressor.residual(), size), residual);
      }
    }
}

TEST(Updates, UpdateEachElementOfManyParametersOnce) {
  STARLING_NEEDS_DEVICE();
  use_device(0);
  const Context context{Precision::float32};
  const std::vector<Parameter> parameters{{.name = "a", .shape = {9000}},
                                          {.name = "b", .shape = {1}, .decay = false},
                                          {.name = "c", .shape = {4096}, .trained = false}};
  const std::size_t size = total_size(parameters);
  DeviceUpdate update{Sgd{.lr = 1}, {}, parameters};
  const StagedUpdate staged = stage(Sgd{.lr = 1}, {});
  DeviceArray<StagedUpdate> device_update{1};
  check(cudaMemcpy(device_update.data(), &staged, sizeof staged, cudaMemcpyHostToDevice),
        "copying");
  finish_default_stream();
  const auto w = to_device(std::vector<float>(size, 5.0F));
  const auto g = to_device(std::vector<float>(size, 1.0F));
  update.apply(context, device_update.data(), g.data(), w.data());
  std::vector<float> expected(size, 4.0F);
  std::fill(expected.begin() + 9001, expected.end(), 6.0F);
  EXPECT_EQ(to_host(context, w.data(), size), expected);
}

}  // namespace
}  // namespace starling::models::cuda
