// Pooling: max-pool, avg-pool, global-avg-pool.
#include <algorithm>

#include "starling/models/kernels/kernels.hpp"
#include "starling/models/kernels/multiversioning.hpp"
#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

using Size = std::size_t;

/// The rows, or the columns, of a window that are within the image: from `from` to the one before
/// `to`.
struct Interval {
  Size from;
  Size to;
  [[nodiscard]] Size size() const { return to - from; }
};

/// Returns the rows, or the columns, of window number `index` along an axis of `extent` pixels.
STARLING_INLINE Interval interval_of(Size index, const PoolShape& w, Size extent) {
  const Size start = index * w.stride;
  return {start < w.padding ? 0 : start - w.padding, std::min(start + w.size - w.padding, extent)};
}

/// Calls visit(rows, columns) for the window of every output pixel of an image, row by row.
template <class Visit>
STARLING_INLINE void for_each_window(const PoolShape& w, Visit visit) {
  for (Size p = 0; p < w.out_height(); ++p)
    for (Size q = 0; q < w.out_width(); ++q)
      visit(interval_of(p, w, w.height), interval_of(q, w, w.width));
}

/// The largest numbers so far, and the index of each in its image.
template <class T>
struct Maxima {
  T* values;
  std::uint32_t* indices;
};

/// Sets each number of `best`, which is as long as a row of the image, to the largest number at the
/// same position of all of the window's rows.
template <class T>
STARLING_INLINE void max_of_rows(const PoolShape& w, const T* image, Interval rows,
                                 Maxima<T> best) {
  const Size size = w.width * w.channels;
  const Size first = rows.from * size;
  for (Size j = 0; j < size; ++j) {
    best.values[j] = image[first + j];
    best.indices[j] = static_cast<std::uint32_t>(first + j);
  }
  for (Size r = rows.from + 1; r < rows.to; ++r) {
    const T* row = image + r * size;
    const auto row_index = static_cast<std::uint32_t>(r * size);
#pragma omp simd
    for (Size j = 0; j < size; ++j) {
      const bool larger = row[j] > best.values[j];
      best.values[j] = larger ? row[j] : best.values[j];
      best.indices[j] = larger ? row_index + static_cast<std::uint32_t>(j) : best.indices[j];
    }
  }
}

/// Sets y to the largest number of a window's columns, for each channel.
template <class T>
STARLING_INLINE void max_of_columns(const PoolShape& w, Maxima<T> best, Interval columns,
                                    Maxima<T> y) {
  const Size first = columns.from * w.channels;
  for (Size c = 0; c < w.channels; ++c) {
    y.values[c] = best.values[first + c];
    y.indices[c] = best.indices[first + c];
  }
  for (Size s = columns.from + 1; s < columns.to; ++s) {
    const T* values = best.values + s * w.channels;
    const std::uint32_t* indices = best.indices + s * w.channels;
#pragma omp simd
    for (Size c = 0; c < w.channels; ++c) {
      const bool larger = values[c] > y.values[c];
      y.values[c] = larger ? values[c] : y.values[c];
      y.indices[c] = larger ? indices[c] : y.indices[c];
    }
  }
}

/// Reduces a window's rows before its columns, because rows are long even if there are few
/// channels. `best` is memory for width x channels numbers.
template <class T>
STARLING_INLINE void max_loop(const PoolShape& w, Size n, const T* x, Maxima<T> best, Maxima<T> y) {
  for (Size i = 0; i < n; ++i)
    for (Size p = 0; p < w.out_height(); ++p) {
      max_of_rows(w, x + i * w.input_size(), interval_of(p, w, w.height), best);
      for (Size q = 0; q < w.out_width(); ++q) {
        max_of_columns(w, best, interval_of(q, w, w.width), y);
        y.values += w.channels;
        y.indices += w.channels;
      }
    }
}

template <class T>
STARLING_INLINE void mean_loop(const PoolShape& w, Size n, const T* x, T* y) {
  for (Size i = 0; i < n; ++i, x += w.input_size())
    for_each_window(w, [&](Interval rows, Interval columns) {
      const T share = 1 / static_cast<T>(rows.size() * columns.size());
      for (Size c = 0; c < w.channels; ++c) y[c] = 0;
      for (Size r = rows.from; r < rows.to; ++r)
        for (Size s = columns.from; s < columns.to; ++s) {
          const T* pixel = x + (r * w.width + s) * w.channels;
#pragma omp simd
          for (Size c = 0; c < w.channels; ++c) y[c] += share * pixel[c];
        }
      y += w.channels;
    });
}

/// Adds the derivatives with respect to x to dx.
template <class T>
STARLING_INLINE void mean_backward_loop(const PoolShape& w, Size n, const T* dy, T* dx) {
  for (Size i = 0; i < n; ++i, dx += w.input_size())
    for_each_window(w, [&](Interval rows, Interval columns) {
      const T share = 1 / static_cast<T>(rows.size() * columns.size());
      for (Size r = rows.from; r < rows.to; ++r)
        for (Size s = columns.from; s < columns.to; ++s) {
          T* pixel = dx + (r * w.width + s) * w.channels;
#pragma omp simd
          for (Size c = 0; c < w.channels; ++c) pixel[c] += share * dy[c];
        }
      dy += w.channels;
    });
}

#define STARLING_POOL(T)                                                                        \
  STARLING_MULTIVERSION void max_of(const PoolShape& w, Size n, const T* x, Maxima<T> best,     \
                                    Maxima<T> y) {                                              \
    max_loop(w, n, x, best, y);                                                                 \
  }                                                                                             \
  STARLING_MULTIVERSION void mean_of(const PoolShape& w, Size n, const T* x, T* y) {            \
    mean_loop(w, n, x, y);                                                                      \
  }                                                                                             \
  STARLING_MULTIVERSION void mean_backward_of(const PoolShape& w, Size n, const T* dy, T* dx) { \
    mean_backward_loop(w, n, dy, dx);                                                           \
  }

STARLING_POOL(float)
STARLING_POOL(double)

/// A layer that computes one number of each channel from each window.
template <class T>
class Pool : public Layer<T> {
 public:
  explicit Pool(const PoolShape& window) : window_(window) {}
  [[nodiscard]] Shape output() const override {
    return {window_.out_height(), window_.out_width(), window_.channels};
  }

 protected:
  [[nodiscard]] const PoolShape& window() const { return window_; }

 private:
  PoolShape window_;
};

/// The largest number of each window, channel by channel; if several are equal, the one in the
/// leftmost column, and there the uppermost. Ignores pixels outside the image. Saves the indices of
/// the largest numbers.
template <class T>
class MaxPool final : public Pool<T> {
 public:
  using Pool<T>::Pool;
  [[nodiscard]] LayerSpecification specification() const override {
    return MaxPoolSpecification{this->window()};
  }

  Saved<T> forward(const Forward<T>& f) const override {
    const PoolShape& w = this->window();
    Arena& arena = f.context.arena;
    const auto indices = arena.allocate<std::uint32_t>(f.y.size());
    const auto best = arena.allocate<T>(w.width * w.channels);
    const auto best_indices = arena.allocate<std::uint32_t>(best.size());
    max_of(w, f.n, f.x.data(), Maxima<T>{best.data(), best_indices.data()},
           Maxima<T>{f.y.data(), indices.data()});
    return {.values = {}, .indices = indices};
  }
  void backward(const Backward<T>& b) const override {
    if (b.dx.empty()) return;
    std::ranges::fill(b.dx, T{0});
    const Size in = this->window().input_size();
    const Size out = b.dy.size() / b.n;
    for (Size i = 0; i < b.n; ++i) {
      const auto dx = b.dx.subspan(i * in, in);
      for (Size j = i * out; j < (i + 1) * out; ++j) dx[b.saved.indices[j]] += b.dy[j];
    }
  }
};

/// The mean of each window, channel by channel, over the pixels within the image.
template <class T>
class AvgPool : public Pool<T> {
 public:
  using Pool<T>::Pool;
  [[nodiscard]] LayerSpecification specification() const override {
    return AvgPoolSpecification{this->window()};
  }

  Saved<T> forward(const Forward<T>& f) const override {
    mean_of(this->window(), f.n, f.x.data(), f.y.data());
    return {};
  }
  void backward(const Backward<T>& b) const override {
    if (b.dx.empty()) return;
    std::ranges::fill(b.dx, T{0});
    mean_backward_of(this->window(), b.n, b.dy.data(), b.dx.data());
  }
};

/// The most pixels that are added to a sum one after the other: a float loses the more of each term
/// the larger the sum already is.
constexpr Size pixels_in_sum = 4096;

/// The mean of each channel, as a row.
template <class T>
class GlobalAvgPool final : public Layer<T> {
 public:
  explicit GlobalAvgPool(const Shape& input) : pixels_(input[0] * input[1]), channels_(input[2]) {}
  [[nodiscard]] Shape output() const override { return {channels_}; }
  [[nodiscard]] LayerSpecification specification() const override {
    return GlobalAvgPoolSpecification{pixels_, channels_};
  }

  Saved<T> forward(const Forward<T>& f) const override {
    std::ranges::fill(f.y, T{0});
    const auto partial = f.context.arena.template allocate<T>(channels_);
    for (Size i = 0; i < f.n; ++i)
      for (Size first = 0; first < pixels_; first += pixels_in_sum) {
        const Size count = std::min(pixels_in_sum, pixels_ - first);
        std::ranges::fill(partial, T{0});
        add_column_sums(f.x.subspan(i * size() + first * channels_, count * channels_), partial);
        axpy<T, T>(1, partial, f.y.subspan(i * channels_, channels_));
      }
    scale(1 / static_cast<T>(pixels_), f.y);
    return {};
  }
  void backward(const Backward<T>& b) const override {
    if (b.dx.empty()) return;
    scale(1 / static_cast<T>(pixels_), b.dy);
    for (Size i = 0; i < b.n; ++i)
      fill_rows<T>(b.dy.subspan(i * channels_, channels_), b.dx.subspan(i * size(), size()));
  }

 private:
  [[nodiscard]] Size size() const { return pixels_ * channels_; }

  Size pixels_;
  Size channels_;
};

template <class T, template <class> class Kind>
LayerPointer<T> make_pool(SpecReader& reader, const Shape& input) {
  PoolShape window;
  window.size = read_size(reader, "the side of its window", side_max);
  window.stride = reader.count("stride", window.size, 1, side_max);
  window.padding = reader.count("padding", 0, 0, side_max);
  if (!check_image(reader, input) || window.size == 0) return nullptr;
  if (window.padding >= window.size) {
    reader.refuse("padding=" + std::to_string(window.padding) +
                  " must be less than its window's side " + std::to_string(window.size));
    return nullptr;
  }
  if (!check_window(reader, input, window.size, window.padding)) return nullptr;
  window.height = input[0];
  window.width = input[1];
  window.channels = input[2];
  return std::make_shared<Kind<T>>(window);
}

}  // namespace

template <class T>
LayerPointer<T> make_max_pool(SpecReader& reader, const Shape& input) {
  return make_pool<T, MaxPool>(reader, input);
}
template <class T>
LayerPointer<T> make_avg_pool(SpecReader& reader, const Shape& input) {
  return make_pool<T, AvgPool>(reader, input);
}
template <class T>
LayerPointer<T> make_global_avg_pool(SpecReader& reader, const Shape& input) {
  if (!check_image(reader, input)) return nullptr;
  return std::make_shared<GlobalAvgPool<T>>(input);
}

#define STARLING_INSTANTIATE(T)                                         \
  template LayerPointer<T> make_max_pool<T>(SpecReader&, const Shape&); \
  template LayerPointer<T> make_avg_pool<T>(SpecReader&, const Shape&); \
  template LayerPointer<T> make_global_avg_pool<T>(SpecReader&, const Shape&);

STARLING_INSTANTIATE(float)
STARLING_INSTANTIATE(double)
#undef STARLING_INSTANTIATE

}  // namespace starling::models
