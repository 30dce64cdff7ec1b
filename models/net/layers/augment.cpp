// Layers that vary images while training, for small data sets: random-flip, random-shift.
#include <algorithm>

#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

/// Changes each image in one of several ways, drawn anew for each, or leaves it while not training.
/// Keeps the draws; the backward pass reverses each change.
template <class T>
class Augment : public Layer<T> {
 public:
  explicit Augment(Shape shape) : shape_(std::move(shape)) {}
  [[nodiscard]] Shape output() const override { return shape_; }

  Kept<T> forward(const Forward<T>& f) const override {
    if (!f.pass.training) {
      std::ranges::copy(f.x, f.y.begin());
      return {};
    }
    const auto drawn = f.pass.arena.template take<std::uint32_t>(f.n);
    std::ranges::fill(f.y, T{0});
    for (std::size_t i = 0; i < f.n; ++i) {
      drawn[i] = draw(f.pass.random);
      const std::size_t image = i * volume(shape_);
      move(drawn[i], [&](std::size_t from, std::size_t to) {
        std::copy_n(f.x.data() + image + from, shape_[2], f.y.data() + image + to);
      });
    }
    return {.values = {}, .indices = drawn};
  }
  void backward(const Backward<T>& b) const override {
    std::ranges::fill(b.dx, T{0});
    for (std::size_t i = 0; i < b.n && !b.dx.empty(); ++i) {
      const std::size_t image = i * volume(shape_);
      move(b.kept.indices[i], [&](std::size_t from, std::size_t to) {
        std::copy_n(b.dy.data() + image + to, shape_[2], b.dx.data() + image + from);
      });
    }
  }

 protected:
  [[nodiscard]] virtual std::uint32_t draw(Random& random) const = 0;
  /// The place of a pixel; source() returns the place whose pixel moves to `to`, and a place
  /// outside the image is black.
  struct Place {
    std::size_t row;
    std::size_t column;
  };
  [[nodiscard]] virtual Place source(std::uint32_t drawn, Place to) const = 0;
  [[nodiscard]] const Shape& shape() const { return shape_; }

 private:
  /// Calls copy(from, to) with the places of the pixels that stay within the image.
  template <class Copy>
  void move(std::uint32_t drawn, Copy copy) const {
    const std::size_t width = shape_[1];
    for (std::size_t row = 0; row < shape_[0]; ++row)
      for (std::size_t column = 0; column < width; ++column) {
        const Place from = source(drawn, {row, column});
        if (from.row < shape_[0] && from.column < width)
          copy((from.row * width + from.column) * shape_[2], (row * width + column) * shape_[2]);
      }
  }

  Shape shape_;
};

template <class T>
class RandomFlip final : public Augment<T> {
 public:
  using Augment<T>::Augment;

  [[nodiscard]] LayerForm form() const override {
    const Shape& s = this->shape();
    return FlipForm{s[0], s[1], s[2]};
  }

 private:
  using Place = typename Augment<T>::Place;
  [[nodiscard]] std::uint32_t draw(Random& random) const override {
    return static_cast<std::uint32_t>(random.below(2));
  }
  [[nodiscard]] Place source(std::uint32_t flips, Place to) const override {
    return flips != 0 ? Place{to.row, this->shape()[1] - 1 - to.column} : to;
  }
};

/// Moves images by -most to most rows and columns, all shifts equally likely.
template <class T>
class RandomShift final : public Augment<T> {
 public:
  RandomShift(Shape shape, std::size_t most) : Augment<T>(std::move(shape)), most_(most) {}

  [[nodiscard]] LayerForm form() const override {
    const Shape& s = this->shape();
    return ShiftForm{s[0], s[1], s[2], most_};
  }

 private:
  using Place = typename Augment<T>::Place;
  [[nodiscard]] std::size_t ways() const { return 2 * most_ + 1; }
  [[nodiscard]] std::uint32_t draw(Random& random) const override {
    return static_cast<std::uint32_t>(random.below(ways() * ways()));
  }
  /// Beyond the upper or left border the difference wraps around, so that it is outside the image,
  /// too.
  [[nodiscard]] Place source(std::uint32_t drawn, Place to) const override {
    return {to.row + drawn / ways() - most_, to.column + drawn % ways() - most_};
  }

  std::size_t most_;
};

}  // namespace

template <class T>
LayerPointer<T> make_random_flip(SpecReader& read, const Shape& input) {
  if (!check_image(read, input)) return nullptr;
  return std::make_shared<RandomFlip<T>>(input);
}

template <class T>
LayerPointer<T> make_random_shift(SpecReader& read, const Shape& input) {
  const std::size_t most = read_size(read, "its pixels");
  if (!check_image(read, input) || most == 0) return nullptr;
  if (most < std::min(input[0], input[1])) return std::make_shared<RandomShift<T>>(input, most);
  read.refuse("moves by " + std::to_string(most) + " pixels what has " + print_shape(input) +
              "; valid: less than either side");
  return nullptr;
}

#define STARLING_INSTANTIATE(T)                                            \
  template LayerPointer<T> make_random_flip<T>(SpecReader&, const Shape&); \
  template LayerPointer<T> make_random_shift<T>(SpecReader&, const Shape&);

STARLING_INSTANTIATE(float)
STARLING_INSTANTIATE(double)
#undef STARLING_INSTANTIATE

}  // namespace starling::models
