/// The sums of workers that have the optimizer's state in shards (optimizer_shards.hpp).
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/exchange/allreduce/typed_round_sum.hpp"

namespace starling::core {

/// T is float or double. After the sum, the elements of the vector are the new values of the
/// ranges; the counts and the numbers of the workers are sums as ever.
template <class T>
class ShardedSum final : public TypedRoundSum<T> {
 public:
  using Sends = RoundSum::Sends;

  /// Requires: options.shards.
  ShardedSum(const RoundSumOptions& options, std::uint32_t window)
      : TypedRoundSum<T>(options, SumPlaces::in_shards(*options.layout, options.workers),
                         sharded_schedule(options.shards->backups()), window) {}

  void start(Sends& out, const Update* update, Step steps,
             const std::vector<RangeValues>& ranges) override {
    applied_.clear();
    before_.clear();
    for (RangeId range = 0; range < ranges.size(); ++range)
      if (has_state(range)) before_.emplace(range, ranges[range]);
    TypedRoundSum<T>::start(out, update, steps, ranges);
  }

  void apply(std::vector<RangeValues>& ranges) override {
    const std::vector<T> sum = this->take_sum();
    for (RangeId range = 0; range < ranges.size(); ++range) {
      RangeValues& values = ranges[range];
      const auto slice = std::span{sum}.subspan(this->places().ranges[range]);
      if (has_state(range)) {
        if (!applied_.contains(range)) apply_slice(range, slice);  // there is no other worker
        values = std::move(applied_.at(range));
        continue;
      }
      values.slots = Buffer::zeros(0, sizeof(T));
      const auto elements = slice.first(elements_of(range));
      const std::size_t count = layout().ranges[range].count;
      if (std::ranges::none_of(elements.subspan(count), [](T changes) { return changes > 0; }))
        continue;
      values.value = Buffer::copy_of(elements.first(count));
      ++values.updates;
    }
    applied_.clear();
    before_.clear();
  }

  [[nodiscard]] ShardValues take_shard_values() override {
    if (applied_.size() < before_.size()) return {};
    return std::exchange(applied_, {});
  }

 protected:
  using Kind = collective::Instruction::Kind;

  /// The primary applies a sum before it sends it to the backup; the backup applies it when it gets
  /// it, and goes on with the new values.
  void on_instruction(const collective::Instruction& instruction, const collective::SliceId& slice,
                      std::span<T> elements) override {
    const auto range = static_cast<RangeId>(slice.slice * this->options().workers + slice.chunk);
    if (range >= layout().ranges.size()) return;
    const bool is_send = instruction.kind == Kind::send;
    if (is_send && instruction.round != values_round && this->options().residual)
      this->round(this->places().errors[range], elements.first(elements_of(range)));
    if (instruction.round != sum_round) return;
    apply_slice(range, elements);
    if (!is_send)
      std::ranges::copy(std::as_const(*applied_.at(range).value).template as<T>(),
                        elements.begin());
  }
  [[nodiscard]] bool may_compress(std::uint32_t round) const override {
    return round != values_round;
  }

 private:
  [[nodiscard]] const Layout& layout() const { return *this->options().layout; }
  [[nodiscard]] bool has_state(RangeId range) const {
    return this->options().shards->has_state(this->options().self, range);
  }
  /// Returns how many elements and counts a range has.
  [[nodiscard]] std::size_t elements_of(RangeId range) const {
    return this->places().errors[range + 1] - this->places().errors[range];
  }

  /// Applies the sum of a range. `slice` begins with it, and the numbers of the workers follow.
  void apply_slice(RangeId range, std::span<const T> slice) {
    const std::size_t count = elements_of(range);
    RangeValues values = before_.at(range);
    if (const double weights = this->weights_at(slice, count); weights > 0)
      this->apply_sum(range, values, slice.first(count), weights);
    applied_.insert_or_assign(range, std::move(values));
  }

  /// The values before the sum in progress, and after it, of the ranges of this worker's shards.
  ShardValues before_;
  ShardValues applied_;
};

}  // namespace starling::core
