// Dropout.
#include <algorithm>

#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

/// While training, y_i is x_i / (1 - rate) with probability 1 - rate, else 0, so that y has the
/// same mean as x; in evaluations y = x (Srivastava et al., JMLR 2014, section 10). Saves the
/// factors.
template <class T>
class Dropout final : public Layer<T> {
 public:
  Dropout(Shape shape, double rate) : shape_(std::move(shape)), rate_(rate) {}

  [[nodiscard]] Shape output() const override { return shape_; }
  [[nodiscard]] LayerSpecification specification() const override {
    return DropoutSpecification{rate_};
  }
  [[nodiscard]] bool works_in_place() const override { return true; }

  Saved<T> forward(const Forward<T>& f) const override {
    if (!f.context.training) {
      if (f.x.data() != f.y.data()) std::ranges::copy(f.x, f.y.begin());
      return {};
    }
    const auto factors = f.context.arena.template allocate<T>(f.x.size());
    draw(factors, f.context.random);
    for (std::size_t i = 0; i < factors.size(); ++i) f.y[i] = f.x[i] * factors[i];
    return {.values = factors, .indices = {}};
  }
  void backward(const Backward<T>& b) const override {
    for (std::size_t i = 0; i < b.dx.size(); ++i) b.dx[i] = b.dy[i] * b.saved.values[i];
  }

 private:
  /// Draws the factors, which are 0 or 1 / (1 - rate), two from each 64 random bits.
  void draw(std::span<T> factors, Random& random) const {
    const auto limit = static_cast<std::uint32_t>(rate_ * 0x1p32);
    const T scale = static_cast<T>(1 / (1 - rate_));
    std::size_t i = 0;
    for (; i + 1 < factors.size(); i += 2) {
      const std::uint64_t bits = random();
      factors[i] = static_cast<std::uint32_t>(bits) < limit ? T{0} : scale;
      factors[i + 1] = static_cast<std::uint32_t>(bits >> 32U) < limit ? T{0} : scale;
    }
    if (i < factors.size())
      factors[i] = static_cast<std::uint32_t>(random()) < limit ? T{0} : scale;
  }

  Shape shape_;
  double rate_;
};

}  // namespace

template <class T>
LayerPointer<T> make_dropout(SpecReader& reader, const Shape& input) {
  const std::string text = reader.positional();
  const auto rate = parse_number(text);
  if (rate && *rate >= 0 && *rate < 1) return std::make_shared<Dropout<T>>(input, *rate);
  reader.refuse(text.empty()
                    ? std::string{"needs its rate, like dropout 0.5"}
                    : quote(text) + " must be its rate, a number of at least 0 and below 1");
  return nullptr;
}

template LayerPointer<float> make_dropout<float>(SpecReader&, const Shape&);
template LayerPointer<double> make_dropout<double>(SpecReader&, const Shape&);

}  // namespace starling::models
