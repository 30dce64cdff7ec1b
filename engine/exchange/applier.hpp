/// The arithmetic of an owner: how updates change the elements of a range. Only an Applier knows
/// the type of the elements; the rest of an owner copies and sends bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "starling/engine/core/message.hpp"
#include "starling/engine/exchange/layout.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/models/optimizer/schedule.hpp"

namespace starling::core {

/// The elements of a range, and what their changes depend on.
struct RangeValues {
  std::shared_ptr<Buffer> value;
  /// The state of the optimiser: Applier::slot_count() elements for each element of the range.
  std::shared_ptr<Buffer> slots;
  /// The number of updates applied.
  std::uint64_t updates = 0;
  /// The number of samples from which the applied updates were computed.
  std::uint64_t samples = 0;
};

/// The part of one worker in a bulk-synchronous round of a range. Its update may be empty.
struct RoundPart {
  Slice update;
  /// The number of samples from which the update was computed.
  std::uint32_t samples = 0;
};

/// Memory that an owner keeps from one round to the next.
struct RoundScratch {
  /// The weighted sum of the round's updates of a range.
  std::shared_ptr<Buffer> sum;
  /// By unit of the range (a row, or the whole range): whether an update contains it.
  std::vector<bool> touched;
};

/// Immutable; all owners of a job share one and call it at the same time. If a reader still holds
/// the buffers of a range, a function that changes them first replaces them by copies.
class Applier {
 public:
  virtual ~Applier() = default;

  [[nodiscard]] virtual std::size_t element_bytes() const noexcept = 0;
  /// Returns how many elements the applier keeps for each element of a range.
  [[nodiscard]] virtual std::size_t slot_count() const noexcept = 0;
  /// Returns the factor of the learning rate for a push over `samples` samples in a job of
  /// `workers` workers: samples / (workers * batch), or samples / batch if
  /// OptimizerOptions::is_batch_of_all; always 1 for a merge_applier().
  [[nodiscard]] virtual double weight(std::uint32_t samples,
                                      std::size_t workers) const noexcept = 0;

  /// Applies one update with a weight, and counts it. A gradient with weight 0 has no effect, and
  /// does not count. Requires: fits(range, update, element_bytes()), and that `update` is not
  /// empty.
  virtual void apply(const Layout& layout, RangeId range, RangeValues& values, const Slice& update,
                     double weight) const = 0;
  /// Applies the updates of a bulk-synchronous round, which are in the order of the workers, so
  /// that the result is reproducible.
  virtual void apply_round(const Layout& layout, RangeId range, RangeValues& values,
                           std::span<const RoundPart> round, RoundScratch& scratch) const = 0;

  /// True if apply_round() applies the mean of the updates, weighted by their samples; false if
  /// it applies one after the other.
  [[nodiscard]] virtual bool averages_rounds() const noexcept { return true; }

  /// Moves the values toward those of another copy of the range: by `part`, 0 to 1, of the
  /// difference. The state of the optimiser stays. Requires: `other` holds the whole range.
  void mix(RangeValues& values, const Slice& other, double part) const;
};
using ApplierPtr = std::shared_ptr<const Applier>;

/// Returns true if the state is that of a range of the layout: the range exists, and the values and
/// the slots, if there are any, have its size.
[[nodiscard]] bool fits(const Layout& layout, const Applier& applier, const RangeState& state);
/// Returns the values of a range in new buffers. If the state has no slots, the slots start as
/// zeros. Requires: fits(layout, applier, state).
[[nodiscard]] RangeValues values_of(const Layout& layout, const Applier& applier,
                                    const RangeState& state);
/// Returns true if the range has all of these rows and they ascend strictly, or if `rows` is
/// nullptr, which stands for the whole range.
[[nodiscard]] bool has_rows(const Range& range, const Rows& rows);
/// Returns the current values of the whole range, or of rows of it. Requires: has_rows(range,
/// rows).
[[nodiscard]] Slice slice_of(const Range& range, const RangeValues& values, const Rows& rows);

/// Replaces the values of the whole range, or of rows of it, by those in the slice. Requires:
/// fits(range, slice, element_bytes).
void put_slice(const Range& range, RangeValues& values, const Slice& slice);

/// The options of a gradient_applier(), whose updates are gradients that an optimizer applies.
///
/// A push of n samples is applied with the rate lr * schedule * n / (workers * batch) or, if
/// is_batch_of_all, lr * schedule * n / batch, where lr is the optimizer's learning rate. In
/// bulk-synchronous jobs, the mean of the updates of a round, weighted by their samples, is applied
/// once, with the rate lr * schedule.
struct OptimizerOptions {
  models::Optimizer optimizer;
  models::Schedule schedule;
  double l2 = 0;
  /// The number of samples in a worker's full batch.
  std::size_t batch = 1;
  /// True if `batch` is the sum of the batches of all workers, which are dynamic.
  bool is_batch_of_all = false;
};

/// Says to which elements of which parameter a piece of an update belongs.
struct MergeTarget {
  /// The index of the parameter.
  std::size_t parameter;
  /// The index of the piece's first element in the parameter.
  std::size_t offset;
};

/// A function that merges `update` into `value`, element by element or row by row. It is called
/// once for each run of consecutive elements, and must not throw.
template <class T>
using Merge =
    std::function<void(const MergeTarget& target, std::span<T> value, std::span<const T> update)>;

/// Returns an Applier of gradients with elements of type T, which is float or double.
template <class T>
[[nodiscard]] ApplierPtr gradient_applier(OptimizerOptions options);
/// Returns an Applier that merges updates, those of a round one after the other.
template <class T>
[[nodiscard]] ApplierPtr merge_applier(Merge<T> merge);

}  // namespace starling::core
