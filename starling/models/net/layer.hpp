/// One layer of a net: how its kernels are called. Layers are immutable values behind a pointer,
/// shared by all threads; what a call needs to remember lies in the caller's arena.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "starling/models/model.hpp"
#include "starling/models/net/layer_specification.hpp"
#include "starling/models/net/shape.hpp"
#include "starling/models/parameter.hpp"

namespace starling::models {

/// What a layer's forward pass leaves for its backward pass, taken from the arena; each layer uses
/// what it needs.
template <class T>
struct Kept {
  std::span<T> values;
  std::span<std::uint32_t> indices;
};

/// From the inputs x [n x volume of the input] to the outputs y [n x volume of the output].
template <class T>
struct Forward {
  std::size_t n = 0;
  std::span<const T> w;
  std::span<const T> x;
  std::span<T> y;
  Pass& pass;
};

/// From the derivatives by y to those by x and by w. The spans are those of the forward pass.
template <class T>
struct Backward {
  std::size_t n = 0;
  std::span<const T> w;
  std::span<const T> x;
  std::span<const T> y;
  const Kept<T>& kept;
  /// These samples' share of the batch, where it is handled in pieces.
  T share = 1;
  /// Nobody has added to g yet: it is zero.
  bool is_first = false;
  /// May be overwritten.
  std::span<T> dy;
  /// To be overwritten; empty where nobody needs it.
  std::span<T> dx;
  /// To be added to, as long as w.
  std::span<T> g;
  Pass& pass;
};

template <class T>
class Layer {
 public:
  virtual ~Layer() = default;

  /// Of one sample.
  [[nodiscard]] virtual Shape output() const = 0;
  [[nodiscard]] virtual LayerForm form() const = 0;
  /// Their names are local to the layer: "weights", "bias".
  [[nodiscard]] virtual std::vector<Parameter> parameters() const { return {}; }
  virtual void initialise(std::span<T>, Random&) const {}

  /// True where y may stand in x's place and dx in dy's, for neither pass reads x once y is
  /// written.
  [[nodiscard]] virtual bool works_in_place() const { return false; }
  /// True where the backward pass reads y, so that nobody may overwrite it.
  [[nodiscard]] virtual bool reads_output() const { return false; }

  virtual Kept<T> forward(const Forward<T>& pass) const = 0;
  virtual void backward(const Backward<T>& pass) const = 0;
};

template <class T>
using LayerPointer = std::shared_ptr<const Layer<T>>;

}  // namespace starling::models
