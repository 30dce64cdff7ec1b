// Batch normalisation.
#include <algorithm>
#include <cmath>

#include "starling/models/kernels/column_statistics.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

/// The most rows that are added to a sum one after the other.
constexpr std::size_t rows_in_sum = 4096;

/// Computes sums += the sums over `rows` rows. add(first, count, partial) adds those of `count`
/// rows, from row `first` on, to `partial`. Adds partial sums, because a float does not change any
/// more when a term below its last bit is added, as happens after about 2^24 rows.
template <class T, class Add>
void add_by_parts(std::size_t rows, std::span<T> sums, Arena& arena, const Add& add) {
  const auto partial = arena.allocate<T>(sums.size());
  for (std::size_t first = 0; first < rows; first += rows_in_sum) {
    std::ranges::fill(partial, T{0});
    add(first, std::min(rows_in_sum, rows - first), partial);
    axpy<T, T>(1, partial, sums);
  }
}

/// y = scale (x - m) / sqrt(v + epsilon) + shift for each channel of an image or sequence, or each
/// number of a row (Ioffe, Szegedy, ICML 2015, algorithms 1 and 2). While training, m and v are the
/// batch's mean and variance; otherwise they are the running statistics, the parameters "mean" and
/// "variance", which no optimiser touches. The backward pass writes the change of the running
/// statistics into the gradient: momentum (m - mean) for the mean, and momentum (u - variance) for
/// the variance, with u the unbiased estimate that belongs to v. The owner adds this change,
/// weighted like any update, so that the running statistics are means over all workers. Saves m and
/// 1 / sqrt(v + epsilon) as `mean` and `inverse`.
template <class T>
class BatchNorm final : public Layer<T> {
 public:
  BatchNorm(Shape shape, double momentum, double epsilon)
      : shape_(std::move(shape)),
        channels_(shape_.back()),
        momentum_(static_cast<T>(momentum)),
        epsilon_(static_cast<T>(epsilon)) {}

  [[nodiscard]] Shape output() const override { return shape_; }
  [[nodiscard]] LayerSpecification specification() const override {
    return BatchNormSpecification{channels_, static_cast<double>(momentum_),
                                  static_cast<double>(epsilon_)};
  }
  [[nodiscard]] std::vector<Parameter> parameters() const override {
    return {{.name = "scale", .shape = {channels_}, .decay = false},
            {.name = "shift", .shape = {channels_}, .decay = false},
            {.name = "mean", .shape = {channels_}, .decay = false, .trained = false},
            {.name = "variance", .shape = {channels_}, .decay = false, .trained = false}};
  }
  void initialise(std::span<T> w, Random&) const override {
    std::ranges::fill(part(w, 0), T{1});
    std::ranges::fill(part(w, 1), T{0});
    std::ranges::fill(part(w, 2), T{0});
    std::ranges::fill(part(w, 3), T{1});
  }

  Saved<T> forward(const Forward<T>& f) const override {
    const auto statistics = f.context.arena.template allocate<T>(2 * channels_);
    const auto mean = part(statistics, 0);
    // The variance is written here first, and the loop below replaces it by 1 / sqrt(v + epsilon).
    const auto inverse = part(statistics, 1);
    if (f.context.training) {
      compute_moments(f.x, mean, inverse, f.context.arena);
    } else {
      std::ranges::copy(part(f.w, 2), mean.begin());
      std::ranges::copy(part(f.w, 3), inverse.begin());
    }
    // Pushes that arrive out of order can make a variance negative; it then counts as zero.
    for (T& v : inverse) v = 1 / std::sqrt(std::max(v, T{0}) + epsilon_);
    const auto factor = f.context.arena.template allocate<T>(channels_);
    const auto offset = f.context.arena.template allocate<T>(channels_);
    for (std::size_t j = 0; j < channels_; ++j) {
      factor[j] = f.w[j] * inverse[j];
      offset[j] = f.w[channels_ + j] - factor[j] * mean[j];
    }
    affine_columns<T>(factor, f.x, offset, f.y);
    return {.values = statistics, .indices = {}};
  }

  void backward(const Backward<T>& b) const override {
    const auto mean = part(b.saved.values, 0);
    const auto inverse = part(b.saved.values, 1);
    const auto scratch = b.context.arena.template allocate<T>(5 * channels_);
    std::ranges::fill(scratch, T{0});
    const auto products = part(scratch, 0);
    const auto dy_sums = part(scratch, 1);
    const std::size_t count = b.x.size() / channels_;
    Arena& arena = b.context.arena;
    add_by_parts(count, products, arena, [&](auto first, auto size, std::span<T> sums) {
      add_column_products<T>(rows_of(b.dy, first, size), rows_of(b.x, first, size), mean, sums);
    });
    add_by_parts(count, dy_sums, arena, [&](auto first, auto size, std::span<T> sums) {
      add_column_sums<T>(rows_of(b.dy, first, size), sums);
    });
    const T rows = static_cast<T>(count);
    // dx = dy_factor dy + x_factor x + offset, for each channel.
    const auto dy_factor = part(scratch, 2);
    const auto x_factor = part(scratch, 3);
    const auto offset = part(scratch, 4);
    for (std::size_t j = 0; j < channels_; ++j) {
      const T scale = b.w[j] * inverse[j];
      b.g[j] += products[j] * inverse[j];
      b.g[channels_ + j] += dy_sums[j];
      dy_factor[j] = scale;
      x_factor[j] = -scale * inverse[j] * inverse[j] * products[j] / rows;
      offset[j] = -scale * dy_sums[j] / rows - x_factor[j] * mean[j];
    }
    // One row, as the last batch of an epoch may have, has no variance.
    if (count > 1) add_statistics_change(b, mean, inverse, rows);
    if (b.dx.empty()) return;
    combine_columns<T>(dy_factor, x_factor, b.x, offset, b.dy);
    std::ranges::copy(b.dy, b.dx.begin());
  }

 private:
  /// Returns the i-th part of `values`; each part has one number for each channel. The parts of w
  /// are the scale, the shift, the running mean and the running variance.
  template <class U>
  [[nodiscard]] std::span<U> part(std::span<U> values, std::size_t i) const {
    return values.subspan(i * channels_, channels_);
  }

  /// Returns the elements of `size` rows, from row `first` on.
  [[nodiscard]] std::span<const T> rows_of(std::span<const T> x, std::size_t first,
                                           std::size_t size) const {
    return x.subspan(first * channels_, size * channels_);
  }

  /// Computes the means and biased variances of x's columns.
  void compute_moments(std::span<const T> x, std::span<T> mean, std::span<T> variance,
                       Arena& arena) const {
    const std::size_t rows = x.size() / channels_;
    const T share = 1 / static_cast<T>(rows);
    std::ranges::fill(mean, T{0});
    std::ranges::fill(variance, T{0});
    add_by_parts(rows, mean, arena, [&](auto first, auto size, std::span<T> sums) {
      add_column_sums<T>(rows_of(x, first, size), sums);
    });
    scale(share, mean);
    add_by_parts(rows, variance, arena, [&](auto first, auto size, std::span<T> sums) {
      add_column_squares<T>(rows_of(x, first, size), mean, sums);
    });
    scale(share, variance);
  }

  /// Adds the change of the running statistics to the gradient. `rows` is the number of elements
  /// over which each channel's mean was taken: samples times positions; at least 2.
  void add_statistics_change(const Backward<T>& b, std::span<const T> mean,
                             std::span<const T> inverse, T rows) const {
    const T bias_correction = rows / (rows - 1);
    const T weight = momentum_ * b.share;
    for (std::size_t j = 0; j < channels_; ++j) {
      const T variance = 1 / (inverse[j] * inverse[j]) - epsilon_;
      b.g[2 * channels_ + j] += weight * (mean[j] - b.w[2 * channels_ + j]);
      b.g[3 * channels_ + j] += weight * (bias_correction * variance - b.w[3 * channels_ + j]);
    }
  }

  Shape shape_;
  std::size_t channels_;
  T momentum_;
  T epsilon_;
};

}  // namespace

template <class T>
LayerPointer<T> make_batch_norm(SpecReader& reader, const Shape& input) {
  const double momentum = reader.number("momentum", 0.1, 0, 1);
  const double epsilon = reader.number("epsilon", 1e-5, 1e-12, 1);
  return std::make_shared<BatchNorm<T>>(input, momentum, epsilon);
}

template LayerPointer<float> make_batch_norm<float>(SpecReader&, const Shape&);
template LayerPointer<double> make_batch_norm<double>(SpecReader&, const Shape&);

}  // namespace starling::models
