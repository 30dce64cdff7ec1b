/// Internal: a net's passes on a device, in memory of their own. Belongs to one worker; one thread
/// at a time. Every function but reserve() only puts work into the context's stream, so that it may
/// be recorded into a graph. Pointers are the device's.
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

/// The data that a pass reads beside the parameters: rows, labels and the seed of its draws.
struct NetInput {
  /// [rows x features]
  float* x = nullptr;
  float* labels = nullptr;
  /// The places of x ordered by the id at each place, equal ids in order; null where no layer is an
  /// embedding.
  Index* order = nullptr;
  std::uint64_t* seed = nullptr;
};

class NetRun {
 public:
  explicit NetRun(const Net<float>& net);

  /// The most rows of a batch that are handled at once; larger batches are handled in pieces.
  [[nodiscard]] std::size_t rows_max() const { return rows_max_; }
  /// Ids in a row where the net's first layer is an embedding, else 0.
  [[nodiscard]] std::size_t ids_in_row() const { return ids_in_row_; }

  /// Takes memory for pieces of `rows` rows and chooses algorithms. True where memory moved, so
  /// that recorded graphs are void. Throws Failure. Requires: 0 < rows <= rows_max().
  bool reserve(std::size_t rows, Context& context);

  /// Computes scores() from input.x. Requires: reserve(rows) before.
  void forward(const Context& context, const float* w, const NetInput& input, std::size_t rows,
               bool training, std::uint32_t piece);
  /// Adds the piece's sums to accumulated(). Where `weight`, a row's share of the batch, is above
  /// 0, it also starts the derivatives.
  void loss(const Context& context, const NetInput& input, std::size_t rows, float weight);
  /// Adds to g, after forward() and loss() of the same piece.
  void backward(const Context& context, const float* w, const NetInput& input, std::size_t rows,
                float weight, std::uint32_t piece, float* g);

  /// [rows x outputs]
  [[nodiscard]] const float* scores() const { return values_.back(); }
  /// The sums of losses and merits.
  [[nodiscard]] Accumulator* accumulated() const { return accumulated_; }
  void clear_accumulated(const Context& context) const;

 private:
  [[nodiscard]] std::size_t samples(std::size_t rows) const { return rows * net_.inputs_in_row(); }
  [[nodiscard]] const float* value(std::size_t i, const NetInput& input) const {
    return i == 0 ? input.x : values_[i];
  }
  [[nodiscard]] float* slope(std::size_t value) const {
    return slots_[net_.plan().values()[value].slot];
  }
  [[nodiscard]] PieceCall call(const Context& context, std::size_t step, const float* w,
                               const NetInput& input, std::size_t rows, bool training,
                               std::uint32_t piece) const;
  void add_terms(const Context& context, const PlanStep<float>& sum, const NetInput& input,
                 std::size_t n);
  void spread(const Context& context, const PlanStep<float>& sum, std::size_t n);
  /// Takes memory for `rows` rows and kept_bytes_.
  void take(std::size_t rows);

  Net<float> net_;
  std::vector<std::unique_ptr<DeviceLayer>> layers_;
  std::size_t rows_max_ = 0;
  std::size_t ids_in_row_ = 0;

  /// The number of rows for which memory was taken.
  std::size_t capacity_ = 0;
  std::vector<std::size_t> kept_capacity_;
  /// The bytes that each layer asked for last; kept, so that a step takes no memory for the list.
  std::vector<std::size_t> kept_bytes_;
  DeviceMemory memory_;
  std::vector<float*> values_;
  std::vector<float*> slots_;
  std::vector<void*> kept_;
  /// The loss and merit of each row, summed up into accumulated_.
  float* losses_ = nullptr;
  float* merits_ = nullptr;
  Accumulator* accumulated_ = nullptr;
};

/// Returns the reason why a net cannot run on a device, whatever its memory; empty where it can.
[[nodiscard]] std::string refusal(const Net<float>& net);

}  // namespace starling::models::cuda
