/// One layer of a net: how its kernels are called. Layers are immutable values behind a pointer,
/// shared by all threads; data that a call must remember lies in the caller's arena.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "starling/models/model.hpp"
#include "starling/models/net/layers/layer_specification.hpp"
#include "starling/models/net/layers/shape.hpp"
#include "starling/models/parameter.hpp"

namespace starling::models {

/// The data that a layer's forward pass keeps for its backward pass, taken from the arena; each
/// layer fills the members that it needs.
template <class T>
struct Kept {
  std::span<T> values;
  std::span<std::uint32_t> indices;
};

/// A forward pass: from the inputs x [n x volume of the input] to the outputs y [n x volume of the
/// output].
template <class T>
struct Forward {
  std::size_t n = 0;
  std::span<const T> w;
  std::span<const T> x;
  std::span<T> y;
  Pass& pass;
};

/// A backward pass: from the derivatives by y to the derivatives by x and by w. The spans are those
/// of the forward pass.
template <class T>
struct Backward {
  std::size_t n = 0;
  std::span<const T> w;
  std::span<const T> x;
  std::span<const T> y;
  const Kept<T>& kept;
  /// These samples' share of the batch, where it is handled in pieces.
  T share = 1;
  /// True where g is still zero because nothing was added to it.
  bool is_first = false;
  /// The pass may overwrite it.
  std::span<T> dy;
  /// The pass overwrites it; empty where no derivative by x is needed.
  std::span<T> dx;
  /// The pass adds to it; as long as w.
  std::span<T> g;
  Pass& pass;
};

template <class T>
class Layer {
 public:
  virtual ~Layer() = default;

  /// The output's shape for one sample.
  [[nodiscard]] virtual Shape output() const = 0;
  [[nodiscard]] virtual LayerForm form() const = 0;
  /// The layer's parameters, with names that are local to the layer: "weights", "bias".
  [[nodiscard]] virtual std::vector<Parameter> parameters() const { return {}; }
  virtual void initialise(std::span<T>, Random&) const {}

  /// True where y may lie in x's memory and dx in dy's: neither pass reads x once y is written.
  [[nodiscard]] virtual bool works_in_place() const { return false; }
  /// True where the backward pass reads y, so that no other step may overwrite it.
  [[nodiscard]] virtual bool reads_output() const { return false; }

  virtual Kept<T> forward(const Forward<T>& pass) const = 0;
  virtual void backward(const Backward<T>& pass) const = 0;
};

template <class T>
using LayerPointer = std::shared_ptr<const Layer<T>>;

}  // namespace starling::models
