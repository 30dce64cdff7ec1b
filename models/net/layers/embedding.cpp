// The embedding of ids.
#include "starling/base/check.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/net/layers/makers.hpp"

namespace starling::models {
namespace {

/// The inputs are ids. Row i of the output is the row of "weights" [ids x width] whose index is the
/// i-th id. Initial weights are normal with variance 1 / width.
template <class T>
class Embedding final : public Layer<T> {
 public:
  Embedding(std::size_t length, std::size_t ids, std::size_t width)
      : length_(length), ids_(ids), width_(width) {}

  [[nodiscard]] Shape output() const override { return {length_, width_}; }
  [[nodiscard]] LayerSpecification specification() const override {
    return EmbeddingSpecification{length_, ids_, width_};
  }
  [[nodiscard]] std::vector<Parameter> parameters() const override {
    return {{.name = "weights", .shape = {ids_, width_}, .row_sparse = true}};
  }
  void initialise(std::span<T> w, Random& random) const override {
    const double deviation = 1 / std::sqrt(static_cast<double>(width_));
    for (T& weight : w) weight = static_cast<T>(deviation * random.normal());
  }

  Saved<T> forward(const Forward<T>& f) const override {
    for (std::size_t i = 0; i < f.x.size(); ++i)
      std::ranges::copy(f.w.subspan(id(f.x[i]) * width_, width_), f.y.begin() + offset(i));
    return {};
  }
  void backward(const Backward<T>& b) const override {
    for (std::size_t i = 0; i < b.x.size(); ++i)
      axpy<T, T>(1, b.dy.subspan(i * width_, width_), b.g.subspan(id(b.x[i]) * width_, width_));
  }

 private:
  /// Returns the index of row i's first number in the output.
  [[nodiscard]] std::ptrdiff_t offset(std::size_t i) const {
    return static_cast<std::ptrdiff_t>(i * width_);
  }
  /// Converts an input to an id. Checks it, because another id would index beyond the weights.
  [[nodiscard]] std::size_t id(T input) const {
    STARLING_CHECK(input >= 0 && input < static_cast<T>(ids_));
    return static_cast<std::size_t>(input);
  }

  std::size_t length_;
  std::size_t ids_;
  std::size_t width_;
};

}  // namespace

template <class T>
LayerPointer<T> make_embedding(SpecReader& reader, const Shape& input) {
  const std::size_t ids = read_size(reader, "its number of ids");
  const std::size_t width = reader.count("width", 0, 1, extent_max);
  if (!reader.has("width") && reader.finish())
    reader.refuse("needs width=W, the numbers of one vector");
  if (!check_row(reader, input) || ids == 0 || width == 0) return nullptr;
  return std::make_shared<Embedding<T>>(input[0], ids, width);
}

template LayerPointer<float> make_embedding<float>(SpecReader&, const Shape&);
template LayerPointer<double> make_embedding<double>(SpecReader&, const Shape&);

}  // namespace starling::models
