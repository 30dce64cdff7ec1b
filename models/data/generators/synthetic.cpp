#include <cmath>
#include <numbers>

#include "starling/base/random.hpp"
#include "starling/models/data/generators/generators.hpp"

namespace starling::models {
namespace {

/// The purpose of a random stream. Each purpose has its own streams of the seed.
enum class Stream : std::uint64_t { truth = 1, users = 2, items = 3, rows = 4 };

template <class... Ids>
Random open_stream(std::uint64_t seed, Stream stream, Ids... ids) {
  return Random::stream(seed, static_cast<std::uint64_t>(stream), ids...);
}

/// Fills `out` with standard normal values. Uses both values of each Box-Muller pair.
void fill_normal(Random& random, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - random.real()));
    const double angle = 2.0 * std::numbers::pi * random.real();
    out[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// Returns a matrix of `count` x source.rank random factors, scaled so that the dot product of a
/// user's row and an item's row has variance 1.
std::vector<float> make_factors(std::uint64_t count, const RatingsSource& source,
                                std::uint64_t seed, Stream stream) {
  std::vector<float> factors(count * source.rank);
  const double scale = std::pow(static_cast<double>(source.rank), -0.25);
  for (std::uint64_t row = 0; row < count; ++row) {
    Random random = open_stream(seed, stream, row);
    const auto row_factors = std::span{factors}.subspan(row * source.rank, source.rank);
    fill_normal(random, row_factors);
    for (float& factor : row_factors)
      factor = static_cast<float>(scale * static_cast<double>(factor));
  }
  return factors;
}

/// Returns a dense table of zeros whose labels are real targets.
RawTable make_regression_table(std::size_t features, std::size_t rows) {
  RawTable raw{.features = features};
  raw.x = Table::Dense{std::vector<float>(features * rows)};
  raw.labels.resize(rows);
  raw.labelling = Labelling{};
  return raw;
}

}  // namespace

RawTable make_linear(const LinearSource& source, std::uint64_t seed, Part part) {
  RawTable raw = make_regression_table(source.d, source.n);
  raw.true_weights.resize(source.d);
  Random truth = open_stream(seed, Stream::truth);
  fill_normal(truth, raw.true_weights);
  const std::span<float> x{std::get<Table::Dense>(raw.x).values};
  for (std::uint64_t i = 0; i < source.n; ++i) {
    Random random = open_stream(seed, Stream::rows, part, i);
    const auto row = x.subspan(i * source.d, source.d);
    fill_normal(random, row);
    raw.labels[i] = static_cast<float>(dot(row, raw.true_weights) + source.noise * random.normal());
  }
  return raw;
}

RawTable make_ratings(const RatingsSource& source, std::uint64_t seed, Part part) {
  RawTable raw = make_regression_table(2, source.n);
  const auto users = make_factors(source.users, source, seed, Stream::users);
  const auto items = make_factors(source.items, source, seed, Stream::items);
  const std::span<float> x{std::get<Table::Dense>(raw.x).values};
  for (std::uint64_t i = 0; i < source.n; ++i) {
    Random random = open_stream(seed, Stream::rows, part, i);
    const std::uint64_t user = random.below(source.users);
    const std::uint64_t item = random.below(source.items);
    x[2 * i] = static_cast<float>(user);
    x[2 * i + 1] = static_cast<float>(item);
    const double score = dot(std::span{users}.subspan(user * source.rank, source.rank),
                             std::span{items}.subspan(item * source.rank, source.rank));
    raw.labels[i] = static_cast<float>(score + source.noise * random.normal());
  }
  return raw;
}

}  // namespace starling::models
