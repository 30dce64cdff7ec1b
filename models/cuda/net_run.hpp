/// Internal: runs a net's forward pass, loss and backward pass on a device, for one micro-batch of
/// a batch at a time. Belongs to one worker; not thread-safe. Every function but reserve() only
/// puts work into the context's stream, so that the work can be recorded as a graph. Pointers are
/// to the device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/philox.hpp"
#include "starling/models/cuda/layer.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/net/net.hpp"

namespace starling::models::cuda {

/// The data that the passes read in addition to the parameters: rows, labels and the random seed.
struct NetInput {
  /// The rows [rows x features].
  float* x = nullptr;
  float* labels = nullptr;
  /// The positions in x, sorted by the ids there, equal ids by position; null if no layer is an
  /// embedding.
  Index* order = nullptr;
  std::uint64_t* seed = nullptr;
};

/// A net on a device: its layers, and the memory of its values and derivatives.
class NetRun {
 public:
  explicit NetRun(const Net<float>& net);

  /// The most rows in a micro-batch. The caller divides larger batches into micro-batches.
  [[nodiscard]] std::size_t rows_max() const { return rows_max_; }
  /// The number of ids in a row if the net's first layer is an embedding, else 0.
  [[nodiscard]] std::size_t ids_in_row() const { return ids_in_row_; }

  /// Allocates memory for micro-batches of `rows` rows and chooses algorithms. Returns true if the
  /// address of any memory changed: graphs that were recorded before must then not be used any
  /// more. Throws Failure. Requires: 0 < rows <= rows_max().
  bool reserve(std::size_t rows, Context& context);

  /// Computes scores() from input.x. `micro_batch` is the number of the micro-batch in the batch,
  /// on which random numbers depend. Requires: reserve(rows) was called before.
  void forward(const Context& context, const float* w, const NetInput& input, std::size_t rows,
               bool training, std::uint32_t micro_batch);
  /// Adds the micro-batch's sums of loss and metric_value to accumulated(). If `weight` is above 0,
  /// also computes the derivatives of the loss with respect to the scores; `weight` is the share of
  /// one row in the batch.
  void loss(const Context& context, const NetInput& input, std::size_t rows, float weight);
  /// Adds the gradient to g. Requires: forward() and loss() were called for the same micro-batch
  /// before.
  void backward(const Context& context, const float* w, const NetInput& input, std::size_t rows,
                float weight, std::uint32_t micro_batch, float* g);

  /// The scores of the rows [rows x outputs].
  [[nodiscard]] const float* scores() const { return values_.back(); }
  /// The sums of loss and metric_value of all micro-batches since clear_accumulated().
  [[nodiscard]] Accumulator* accumulated() const { return accumulated_; }
  void clear_accumulated(const Context& context) const;

 private:
  /// Returns the number of inputs of the net in `rows` rows; see Net::inputs_in_row().
  [[nodiscard]] std::size_t samples(std::size_t rows) const { return rows * net_.inputs_in_row(); }
  /// Returns the memory of value i of the net's plan.
  [[nodiscard]] const float* value(std::size_t i, const NetInput& input) const {
    return i == 0 ? input.x : values_[i];
  }
  /// Returns the memory of the derivative with respect to a value of the net's plan.
  [[nodiscard]] float* derivative(std::size_t value) const {
    return derivative_blocks_[net_.plan().values()[value].block];
  }
  /// Returns the arguments for the layer of operation number `operation` of the net's plan.
  [[nodiscard]] MicroBatchCall make_call(const Context& context, std::size_t operation,
                                         const float* w, const NetInput& input, std::size_t rows,
                                         bool training, std::uint32_t micro_batch) const;
  /// Computes the value of an operation without a layer, the sum of its inputs, for `n` samples.
  void add_terms(const Context& context, const Operation<float>& sum, const NetInput& input,
                 std::size_t n);
  /// Passes the derivative with respect to a sum, unchanged, to each of its terms.
  void pass_to_terms(const Context& context, const Operation<float>& sum, std::size_t n);
  /// Allocates memory for `rows` rows and saved_bytes_.
  void allocate(std::size_t rows);

  Net<float> net_;
  std::vector<std::unique_ptr<DeviceLayer>> layers_;
  std::size_t rows_max_ = 0;
  std::size_t ids_in_row_ = 0;

  /// The number of rows, and the bytes of saved data for each layer, for which memory is allocated.
  std::size_t rows_capacity_ = 0;
  std::vector<std::size_t> saved_capacity_;
  /// The bytes of saved data that each layer needs for the last reserve(). A member, so that
  /// reserve() does not allocate this vector in every step.
  std::vector<std::size_t> saved_bytes_;
  DeviceMemory memory_;
  /// The memory of each value of the net's plan; values_[0] is null, because the input is
  /// elsewhere.
  std::vector<float*> values_;
  /// The memory of each block of the net's plan, in which derivatives are computed.
  std::vector<float*> derivative_blocks_;
  /// The memory in which each layer saves data for its backward pass.
  std::vector<void*> saved_;
  /// The loss and metric_value of each row, before they are added to accumulated_.
  double* losses_ = nullptr;
  double* metric_values_ = nullptr;
  Accumulator* accumulated_ = nullptr;
};

/// Returns the reason why no device can run the net, even with enough memory; empty if there is
/// none.
[[nodiscard]] std::string unsupported_reason(const Net<float>& net);

}  // namespace starling::models::cuda
