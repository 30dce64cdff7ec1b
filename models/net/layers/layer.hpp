/// The interface of a layer of a net. A layer is immutable and shared by all threads; a forward
/// pass keeps its data in the caller's arena.
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

/// The data that a layer's forward pass saves for its backward pass, in memory of the arena. Each
/// layer uses the members that it needs.
template <class T>
struct Saved {
  std::span<T> values;
  std::span<std::uint32_t> indices;
};

/// The arguments of a forward pass, which computes the outputs y [n x volume of the output] from
/// the inputs x [n x volume of the input].
template <class T>
struct Forward {
  /// The number of samples.
  std::size_t n = 0;
  /// The layer's parameters.
  std::span<const T> w;
  std::span<const T> x;
  std::span<T> y;
  ComputeContext& context;
};

/// The arguments of a backward pass, which computes the loss's derivatives with respect to x and w
/// from those with respect to y. n, w, x and y are those of the forward pass.
template <class T>
struct Backward {
  std::size_t n = 0;
  std::span<const T> w;
  std::span<const T> x;
  std::span<const T> y;
  const Saved<T>& saved;
  /// n divided by the number of samples of the whole batch; below 1 if the batch is computed in
  /// micro-batches.
  T share = 1;
  /// True if g is still zero, because nothing was added to it.
  bool is_gradient_zero = false;
  /// The derivative with respect to y. The pass may overwrite it.
  std::span<T> dy;
  /// The pass writes the derivative with respect to x here; empty if it is not needed.
  std::span<T> dx;
  /// The pass adds the derivative with respect to w to g, which is as long as w.
  std::span<T> g;
  ComputeContext& context;
};

template <class T>
class Layer {
 public:
  virtual ~Layer() = default;

  /// The output's shape for one sample.
  [[nodiscard]] virtual Shape output() const = 0;
  /// Returns the numbers from which another device can make its own kernels for the layer.
  [[nodiscard]] virtual LayerSpecification specification() const = 0;
  /// The layer's parameters, with names that are local to the layer: "weights", "bias".
  [[nodiscard]] virtual std::vector<Parameter> parameters() const { return {}; }
  /// Sets the initial parameters.
  virtual void initialise(std::span<T>, Random&) const {}

  /// Returns true if y may use x's memory, and dx may use dy's: neither pass reads x after y is
  /// written.
  [[nodiscard]] virtual bool works_in_place() const { return false; }
  /// Returns true if the backward pass reads y, so that no later operation may overwrite it.
  [[nodiscard]] virtual bool reads_output() const { return false; }

  virtual Saved<T> forward(const Forward<T>& arguments) const = 0;
  virtual void backward(const Backward<T>& arguments) const = 0;
};

template <class T>
using LayerPointer = std::shared_ptr<const Layer<T>>;

}  // namespace starling::models
