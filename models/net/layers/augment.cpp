// random-flip and random-shift, which augment small data sets: they vary images while training.
#include <algorithm>

#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

/// While training, moves the pixels of each image as a draw for this image decides; otherwise
/// copies the images. Saves the draws; the backward pass reverses each move.
template <class T>
class Augment : public Layer<T> {
 public:
  explicit Augment(Shape shape) : shape_(std::move(shape)) {}
  [[nodiscard]] Shape output() const override { return shape_; }

  Saved<T> forward(const Forward<T>& f) const override {
    if (!f.context.training) {
      std::ranges::copy(f.x, f.y.begin());
      return {};
    }
    const auto drawn = f.context.arena.template allocate<std::uint32_t>(f.n);
    std::ranges::fill(f.y, T{0});
    for (std::size_t i = 0; i < f.n; ++i) {
      drawn[i] = draw(f.context.random);
      const std::size_t image_offset = i * volume(shape_);
      for_each_kept_pixel(drawn[i], [&](std::size_t from, std::size_t to) {
        std::copy_n(f.x.data() + image_offset + from, shape_[2], f.y.data() + image_offset + to);
      });
    }
    return {.values = {}, .indices = drawn};
  }
  void backward(const Backward<T>& b) const override {
    std::ranges::fill(b.dx, T{0});
    for (std::size_t i = 0; i < b.n && !b.dx.empty(); ++i) {
      const std::size_t image_offset = i * volume(shape_);
      for_each_kept_pixel(b.saved.indices[i], [&](std::size_t from, std::size_t to) {
        std::copy_n(b.dy.data() + image_offset + to, shape_[2], b.dx.data() + image_offset + from);
      });
    }
  }

 protected:
  struct Pixel {
    std::size_t row;
    std::size_t column;
  };
  /// Draws a number that encodes how to move one image's pixels.
  [[nodiscard]] virtual std::uint32_t draw(Random& random) const = 0;
  /// Returns the pixel that moves to `to` under the draw `drawn`. If this pixel is outside the
  /// image, `to` becomes 0.
  [[nodiscard]] virtual Pixel source(std::uint32_t drawn, Pixel to) const = 0;
  [[nodiscard]] const Shape& shape() const { return shape_; }

 private:
  /// Calls copy(from, to) with the offsets of each pixel that stays within the image.
  template <class Copy>
  void for_each_kept_pixel(std::uint32_t drawn, Copy copy) const {
    const std::size_t width = shape_[1];
    for (std::size_t row = 0; row < shape_[0]; ++row)
      for (std::size_t column = 0; column < width; ++column) {
        const Pixel from = source(drawn, {row, column});
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

  [[nodiscard]] LayerSpecification specification() const override {
    const Shape& s = this->shape();
    return RandomFlipSpecification{s[0], s[1], s[2]};
  }

 private:
  using Pixel = typename Augment<T>::Pixel;
  [[nodiscard]] std::uint32_t draw(Random& random) const override {
    return static_cast<std::uint32_t>(random.below(2));
  }
  [[nodiscard]] Pixel source(std::uint32_t is_flipped, Pixel to) const override {
    return is_flipped != 0 ? Pixel{to.row, this->shape()[1] - 1 - to.column} : to;
  }
};

/// Moves images by -shift_max to shift_max rows and columns, all shifts equally likely.
template <class T>
class RandomShift final : public Augment<T> {
 public:
  RandomShift(Shape shape, std::size_t shift_max)
      : Augment<T>(std::move(shape)), shift_max_(shift_max) {}

  [[nodiscard]] LayerSpecification specification() const override {
    const Shape& s = this->shape();
    return RandomShiftSpecification{s[0], s[1], s[2], shift_max_};
  }

 private:
  using Pixel = typename Augment<T>::Pixel;
  /// The number of shifts along one axis.
  [[nodiscard]] std::size_t shifts() const { return 2 * shift_max_ + 1; }
  [[nodiscard]] std::uint32_t draw(Random& random) const override {
    return static_cast<std::uint32_t>(random.below(shifts() * shifts()));
  }
  /// Beyond the upper or left border the unsigned difference wraps around to a large number, which
  /// is outside the image too.
  [[nodiscard]] Pixel source(std::uint32_t drawn, Pixel to) const override {
    return {to.row + drawn / shifts() - shift_max_, to.column + drawn % shifts() - shift_max_};
  }

  std::size_t shift_max_;
};

}  // namespace

template <class T>
LayerPointer<T> make_random_flip(SpecReader& reader, const Shape& input) {
  if (!check_image(reader, input)) return nullptr;
  return std::make_shared<RandomFlip<T>>(input);
}

template <class T>
LayerPointer<T> make_random_shift(SpecReader& reader, const Shape& input) {
  const std::size_t shift_max = read_size(reader, "its number of pixels");
  if (!check_image(reader, input) || shift_max == 0) return nullptr;
  if (shift_max < std::min(input[0], input[1]))
    return std::make_shared<RandomShift<T>>(input, shift_max);
  reader.refuse("moves images of " + print_shape(input) + " by " + std::to_string(shift_max) +
                " pixels; valid: fewer than " + std::to_string(std::min(input[0], input[1])));
  return nullptr;
}

#define STARLING_INSTANTIATE(T)                                            \
  template LayerPointer<T> make_random_flip<T>(SpecReader&, const Shape&); \
  template LayerPointer<T> make_random_shift<T>(SpecReader&, const Shape&);

STARLING_INSTANTIATE(float)
STARLING_INSTANTIATE(double)
#undef STARLING_INSTANTIATE

}  // namespace starling::models
