/// The sums of workers that have the optimizer's state in shards (optimizer_shards.hpp).
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/exchange/allreduce/typed_round_sum.hpp"

namespace starling::core {

/// T is float or double. After the sum, the elements of the vector are the new values of the
/// ranges; the counts of changes and the numbers of steps and samples are sums, as without shards.
/// A worker that is alone sends and receives nothing, so only apply() applies its sum.
///
/// The values and the state before a round are kept until it is complete, because the round may be
/// aborted. So during a round a worker has the values and the state of its shards twice.
template <class T>
class ShardedSum final : public TypedRoundSum<T> {
 public:
  using Sends = RoundSum::Sends;

  /// Requires: options.shards.
  ShardedSum(const RoundSumOptions& options, const Bucket& bucket, std::uint32_t window)
      : TypedRoundSum<T>(options, SumOffsets::in_shards(*options.layout, bucket, options.workers),
                         sharded_schedule(options.shards->backups()), window) {}

  void start(Sends& out, const Update* update, Step steps,
             const std::vector<RangeValues>& ranges) override {
    applied_.clear();
    before_.clear();
    for (RangeId range = bucket().first; range < bucket().end; ++range)
      if (keeps_state(range) && this->options().workers > 1) before_.emplace(range, ranges[range]);
    TypedRoundSum<T>::start(out, update, steps, ranges);
  }

  void apply(std::vector<RangeValues>& ranges) override {
    const std::vector<T> sum = this->take_sum();
    for (RangeId range = bucket().first; range < bucket().end; ++range) {
      RangeValues& values = ranges[range];
      const auto slice = std::span{sum}.subspan(this->offsets().offset_of(range));
      if (keeps_state(range)) {
        if (const auto applied = applied_.extract(range))
          values = std::move(applied.mapped());
        else
          apply_slice(range, values, slice);
        continue;
      }
      values.slots = Buffer::zeros(0, sizeof(T));
      const auto elements = slice.first(this->offsets().size_of(range));
      const std::size_t count = layout().ranges[range].count;
      if (std::ranges::none_of(elements.subspan(count), [](T changes) { return changes > 0; }))
        continue;
      values.value = Buffer::copy_of(elements.first(count));
      ++values.updates;
    }
    before_.clear();
  }

  [[nodiscard]] const RangeValues* applied(RangeId range) const override {
    const auto found = applied_.find(range);
    return found == applied_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::optional<ShardState> shard_state() const override {
    if (applied_.size() != before_.size()) return std::nullopt;
    ShardState state;
    for (const auto& [range, values] : applied_) state.emplace(range, values.slots);
    return state;
  }

 protected:
  using Kind = collective::Instruction::Kind;

  /// The primary applies a sum before it sends it to the backup; the backup applies the sum when it
  /// receives it, and sends the new values on.
  void on_instruction(const collective::Instruction& instruction, const collective::SliceId& slice,
                      std::span<T> elements) override {
    const std::size_t workers = this->options().workers;
    const auto range = static_cast<RangeId>(this->offsets().aligned_first(workers) +
                                            slice.slice * workers + slice.chunk);
    if (!bucket().contains(range)) return;
    const bool is_send = instruction.kind == Kind::send;
    if (is_send && instruction.round != values_round && this->options().residual)
      this->round_to_bf16(this->offsets().errors[range],
                          elements.first(this->offsets().size_of(range)));
    if (instruction.round != sum_round) return;
    RangeValues& values = applied_.insert_or_assign(range, before_.at(range)).first->second;
    apply_slice(range, values, elements);
    if (!is_send)
      std::ranges::copy(std::as_const(*values.value).template as<T>(), elements.begin());
  }
  [[nodiscard]] bool may_compress(std::uint32_t round) const override {
    return round != values_round;
  }

 private:
  [[nodiscard]] const Layout& layout() const { return *this->options().layout; }
  [[nodiscard]] bool keeps_state(RangeId range) const {
    return this->options().shards->keeps_state(this->options().self, range);
  }
  [[nodiscard]] const Bucket& bucket() const { return this->offsets().bucket; }

  /// Applies the sum of a range. `slice` begins with the sum and its counts, and the elements of
  /// the workers follow.
  void apply_slice(RangeId range, RangeValues& values, std::span<const T> slice) {
    const std::size_t count = this->offsets().size_of(range);
    if (const double weights = this->weights_at(slice, count); weights > 0)
      this->apply_sum(range, values, slice.first(count), weights);
  }

  /// The values before the sum in progress, and after it, of the ranges of this worker's shards.
  std::map<RangeId, RangeValues> before_;
  std::map<RangeId, RangeValues> applied_;
};

}  // namespace starling::core
