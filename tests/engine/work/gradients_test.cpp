/// Tests the gradients that a worker pushes: which rows a step reads, and which parameters are
/// clipped.
#include "starling/engine/work/gradients.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "starling/models/table.hpp"

namespace starling::core {
namespace {

using models::Table;

constexpr std::size_t row_count = 100'000;

/// A model with a known gradient: 3 and 4 in two trained parameters, `change` in the untrained
/// buffer between them, and 12 in row 7 and in the last row of the parameter `rows`.
struct KnownGradient {
  using Scalar = double;
  double change = 0;
  bool is_row_sparse = false;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "first", .shape = {1}},
            {.name = "buffer", .shape = {2}, .trained = false},
            {.name = "last", .shape = {1}},
            {.name = "rows", .shape = {row_count, 1}, .row_sparse = is_row_sparse}};
  }
  void initialise(std::span<double>, Random&) const {}
  double gradient(std::span<const double>, const Table&, models::Batch, std::span<double> g,
                  models::ComputeContext&) const {
    g[0] += 3;
    g[1] += change;
    g[2] -= change;
    g[3] += 4;
    g[4 + 7] += 12;
    g[4 + row_count - 1] += 12;
    return 0;
  }
  [[nodiscard]] models::Metrics evaluate(std::span<const double>, const Table&, models::Batch,
                                         models::ComputeContext&) const {
    return {};
  }
  [[nodiscard]] std::vector<models::TouchedRows> touched(const Table&, models::Batch) const {
    if (!is_row_sparse) return {};
    return {{3, {7, row_count - 1}}};
  }
};

/// The gradients of a job with one worker.
struct Job {
  Table data{1, 0, Table::Dense{{1, 2}}, {0, 0}};
  KnownGradient model;
  Gradients<KnownGradient, Table> gradients;

  Job(const KnownGradient& given, const char* clip)
      : model(given),
        gradients(model, data, {.batch = 2, .clip = models::parse_clip(clip).value()},
                  make_layout(model.parameters(), sizeof(double), 2)) {}

  /// Returns the values that a step reads: all ranges, or the planned rows.
  [[nodiscard]] std::vector<Value> read() const {
    const Layout& layout = *gradients.layout();
    std::vector<RangeRows> wanted;
    if (gradients.by_rows()) {
      wanted = gradients.plan(0, 0);
    } else {
      for (RangeId r = 0; r < layout.ranges.size(); ++r) wanted.push_back({r, nullptr});
    }
    std::vector<Value> values;
    for (const auto& [r, rows] : wanted) {
      const std::size_t count = rows ? rows->size() : layout.ranges[r].count;
      values.push_back({r, 0, {Buffer::make<double>(count), 0, count, rows}});
    }
    return values;
  }

  [[nodiscard]] Gradient compute() const {
    Random random{1};
    Scratch scratch;
    return gradients.compute(0, 0, read(), random, scratch);
  }
};

/// Returns the gradient as a vector, with 0 for elements that are in no part.
std::vector<double> to_dense(const Layout& layout, const Gradient& gradient) {
  std::vector<double> g(layout.size);
  for (const auto& [r, values] : gradient.update.parts) {
    const auto from = values.as<double>();
    for (std::size_t i = 0; i < from.size(); ++i)
      g[layout.ranges[r].offset + (values.rows ? (*values.rows)[i] : i)] = from[i];
  }
  return g;
}

/// Expects the known gradient, with its trained elements multiplied by `factor` and then limited to
/// `limit`.
void expect_gradient(const Job& job, double factor, double limit) {
  const auto gradient = job.compute();
  ASSERT_FALSE(gradient.fault) << *gradient.fault;
  const auto g = to_dense(*job.gradients.layout(), gradient);
  const auto clipped = [&](double value) { return std::min(value * factor, limit); };
  EXPECT_DOUBLE_EQ(g[0], clipped(3));
  EXPECT_DOUBLE_EQ(g[1], job.model.change);
  EXPECT_DOUBLE_EQ(g[2], -job.model.change);
  EXPECT_DOUBLE_EQ(g[3], clipped(4));
  EXPECT_DOUBLE_EQ(g[4 + 7], clipped(12));
  EXPECT_DOUBLE_EQ(g[4 + 8], 0);
  EXPECT_DOUBLE_EQ(g[4 + row_count - 1], clipped(12));
}

TEST(Gradients, ClipsTrainedParametersOnly) {
  constexpr double unbounded = std::numeric_limits<double>::infinity();
  const double norm = std::sqrt(9. + 16 + 144 + 144);
  for (const bool is_row_sparse : {false, true}) {
    const KnownGradient given{.change = 500, .is_row_sparse = is_row_sparse};
    expect_gradient({given, "none"}, 1, unbounded);
    expect_gradient({given, "norm:1"}, 1 / norm, unbounded);
    expect_gradient({given, "norm:20"}, 1, unbounded);
    expect_gradient({given, "value:3.5"}, 1, 3.5);
  }
}

TEST(Gradients, ReportsAFaultIfAnyElementIsNotFinite) {
  for (const bool is_row_sparse : {false, true})
    for (const char* clip : {"none", "norm:1", "value:1"}) {
      const KnownGradient given{.change = std::nan(""), .is_row_sparse = is_row_sparse};
      EXPECT_EQ(Job(given, clip).compute().fault, "the gradient is not finite") << clip;
    }
}

TEST(Gradients, PlansTheRowsThatTheModelTouches) {
  const Job job{{.is_row_sparse = true}, "none"};
  const Layout& layout = *job.gradients.layout();
  const auto [first, last] = layout.ranges_of(3);
  ASSERT_GT(last - first, 2U);
  const auto wanted = job.gradients.plan(0, 0);
  ASSERT_EQ(wanted.size(), first + 2U) << "the dense ranges, and two ranges of rows";
  for (RangeId r = 0; r < first; ++r) EXPECT_EQ(wanted[r].rows, nullptr);
  EXPECT_EQ(wanted[first].range, first);
  EXPECT_EQ(*wanted[first].rows, std::vector<std::uint32_t>{7});
  EXPECT_EQ(wanted[first + 1].range, last - 1);
  EXPECT_EQ(
      *wanted[first + 1].rows,
      std::vector<std::uint32_t>{static_cast<std::uint32_t>(layout.ranges[last - 1].count) - 1});
}

/// A model whose gradient of a sample is the sample's number, in a dense parameter and in one row
/// of a row-sparse one.
struct SampleNumbers {
  using Scalar = double;
  bool is_row_sparse = false;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "dense", .shape = {2}},
            {.name = "rows", .shape = {50, 1}, .row_sparse = is_row_sparse}};
  }
  void initialise(std::span<double>, Random&) const {}
  double gradient(std::span<const double>, const Table&, models::Batch batch, std::span<double> g,
                  models::ComputeContext&) const {
    double loss = 0;
    for (const std::uint32_t sample : batch) {
      const double part = sample / static_cast<double>(batch.size());
      g[0] += part;
      g[2 + sample] += part;
      loss += part;
    }
    return loss;
  }
  [[nodiscard]] models::Metrics evaluate(std::span<const double>, const Table&, models::Batch,
                                         models::ComputeContext&) const {
    return {};
  }
  [[nodiscard]] std::vector<models::TouchedRows> touched(const Table&, models::Batch batch) const {
    if (!is_row_sparse) return {};
    std::vector<std::uint32_t> rows{batch.begin(), batch.end()};
    std::ranges::sort(rows);
    return {{1, rows}};
  }
};

class HandedIn : public testing::TestWithParam<bool> {};

TEST_P(HandedIn, EqualsOneComputationOverTheSamplesThatAreDone) {
  const Table data{1, 0, Table::Dense{std::vector<float>(50)}, std::vector<float>(50)};
  const SampleNumbers model{GetParam()};
  const auto order = std::make_shared<const models::SampleOrder>(50, 1, 20, 1);
  const Gradients<SampleNumbers, Table> gradients{
      model, data, {.batch = 20}, make_layout(model.parameters(), sizeof(double), 2)};
  WorkShare share{.order = order, .taken = 10};
  std::vector<RangeRows> wanted;
  if (gradients.by_rows())
    wanted = gradients.plan(0, 0, share);
  else
    for (RangeId r = 0; r < gradients.layout()->ranges.size(); ++r) wanted.push_back({r, nullptr});
  std::vector<Value> values;
  for (const auto& [r, rows] : wanted) {
    const std::size_t count = rows ? rows->size() : gradients.layout()->ranges[r].count;
    values.push_back({r, 0, {Buffer::make<double>(count), 0, count, rows}});
  }
  Scratch scratch;
  const auto compute = [&](const Cut& cut) {
    Random random{1};
    return gradients.compute(0, 0, values, random, scratch, share, cut);
  };
  const auto expect_equal = [&](const Gradient& a, const Gradient& b) {
    ASSERT_EQ(a.update.samples, b.update.samples);
    EXPECT_NEAR(a.update.loss.value(), b.update.loss.value(), 1e-12);
    ASSERT_EQ(a.update.parts.size(), b.update.parts.size());
    for (std::size_t p = 0; p < a.update.parts.size(); ++p)
      for (std::size_t i = 0; i < a.update.parts[p].values.count; ++i)
        EXPECT_NEAR(a.update.parts[p].values.as<double>()[i],
                    b.update.parts[p].values.as<double>()[i], 1e-12);
  };
  std::atomic<bool> hand_in = false;
  EXPECT_EQ(compute({}).update.samples, 20U);
  expect_equal(compute({.hand_in = &hand_in}), compute({}));
  expect_equal(compute({.samples_max = 13, .hand_in = &hand_in}), compute({.samples_max = 13}));
  hand_in = true;
  expect_equal(compute({.hand_in = &hand_in}), compute({.samples_max = 3}));
  EXPECT_EQ(compute({.hand_in = &hand_in}).update.samples, 3U) << "one micro-batch";
}

INSTANTIATE_TEST_SUITE_P(DenseAndByRows, HandedIn, testing::Bool());

/// Its gradient is 1 in each element. It has the last half first.
struct TwoHalves {
  using Scalar = float;
  static constexpr bool has_early_parts = true;
  std::size_t size = 0;
  float last_element = 1;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {size}}};
  }
  void initialise(std::span<float>, Random&) const {}
  double gradient(std::span<const float>, const Table&, models::Batch, std::span<float> g,
                  models::ComputeContext& context) const {
    std::fill(g.begin() + static_cast<std::ptrdiff_t>(size / 2), g.end(), 1.0F);
    g.back() = last_element;
    if (context.on_final != nullptr) (*context.on_final)(size / 2);
    std::fill(g.begin(), g.begin() + static_cast<std::ptrdiff_t>(size / 2), 1.0F);
    if (context.on_final != nullptr) (*context.on_final)(0);
    return 0;
  }
  [[nodiscard]] models::Metrics evaluate(std::span<const float>, const Table&, models::Batch,
                                         models::ComputeContext&) const {
    return {};
  }
};

/// The gradient of TwoHalves in four buckets, and the parts that came early.
struct EarlyGradient {
  std::vector<EarlyParts> early;
  Gradient gradient;

  explicit EarlyGradient(const TwoHalves& model) {
    const Table data{1, 0, Table::Dense{{1, 2}}, {0, 0}};
    const Gradients<TwoHalves, Table> gradients{
        model, data, {.batch = 2}, make_layout(model.parameters(), sizeof(float), 1)};
    EXPECT_TRUE(gradients.has_early_parts());
    const Layout& layout = *gradients.layout();
    const auto buckets = make_buckets(layout, 4);
    const std::function<void(EarlyParts)> take = [&](EarlyParts parts) {
      early.push_back(std::move(parts));
    };
    const PartsSink sink{buckets, take};
    const auto buffer = Buffer::zeros(layout.size, sizeof(float));
    std::vector<Value> values;
    for (RangeId r = 0; r < layout.ranges.size(); ++r)
      values.push_back({r, 0, {buffer, layout.ranges[r].offset, layout.ranges[r].count, nullptr}});
    Random random{1};
    Scratch scratch;
    gradient = gradients.compute(0, 0, values, random, scratch, {}, {}, &sink);
  }
};

constexpr std::size_t eight_ranges = 8 * range_bytes_max / sizeof(float);

TEST(GradientsWithEarlyParts, GiveFinishedBucketsOnce) {
  const EarlyGradient computed{{.size = eight_ranges}};
  ASSERT_EQ(computed.gradient.update.parts.size(), 8U);
  ASSERT_EQ(computed.early.size(), 2U) << "at the half, and before the last bucket";
  EXPECT_EQ(computed.early[0].first, 4U);
  EXPECT_EQ(computed.early[1].first, 2U);
  for (const EarlyParts& early : computed.early) {
    EXPECT_EQ(early.update.samples, 2U);
    ASSERT_EQ(early.update.parts.size(), 8 - early.first);
    for (const Update::Part& part : early.update.parts) {
      EXPECT_EQ(part.values.buffer, computed.gradient.update.parts[part.range].values.buffer);
      for (const float element : part.values.as<float>()) ASSERT_EQ(element, 1);
    }
  }
}

TEST(GradientsWithEarlyParts, GiveNoElementThatIsNotFinite) {
  const EarlyGradient computed{
      {.size = eight_ranges, .last_element = std::numeric_limits<float>::infinity()}};
  EXPECT_TRUE(computed.early.empty());
  EXPECT_EQ(computed.gradient.fault, "the gradient is not finite");
}

TEST(GradientsWithEarlyParts, AreThoseThatNothingChangesAfterwards) {
  const Table data{1, 0, Table::Dense{{1, 2}}, {0, 0}};
  const TwoHalves model{.size = 8};
  const auto has_early_parts = [&](const char* clip) {
    return Gradients<TwoHalves, Table>{model,
                                       data,
                                       {.batch = 2, .clip = models::parse_clip(clip).value()},
                                       make_layout(model.parameters(), sizeof(float), 1)}
        .has_early_parts();
  };
  EXPECT_TRUE(has_early_parts("none"));
  EXPECT_FALSE(has_early_parts("norm:1")) << "a norm is that of all elements";
  EXPECT_FALSE((Job{{}, "none"}.gradients.has_early_parts())) << "a model that has none";
}

}  // namespace
}  // namespace starling::core
