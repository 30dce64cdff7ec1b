/// The sums of workers that have the optimizer's state in shards (optimizer_shards.hpp).
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/exchange/allreduce/typed_round_sum.hpp"

namespace starling::core {

/// T is float or double. After the sum, the elements of the vector are the new values of the
/// ranges; the counts and the numbers of the workers are sums as ever. A worker alone sends and
/// receives nothing, so it applies the sum at last.
///
/// The values and the state before a round are kept until it is complete, because the round may be
/// aborted. So a worker has those of its shards twice meanwhile.
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
      if (keeps_state(range) && this->options().workers > 1) before_.emplace(range, ranges[range]);
    TypedRoundSum<T>::start(out, update, steps, ranges);
  }

  void apply(std::vector<RangeValues>& ranges) override {
    const std::vector<T> sum = this->take_sum();
    for (RangeId range = 0; range < ranges.size(); ++range) {
      RangeValues& values = ranges[range];
      const auto slice = std::span{sum}.subspan(this->places().ranges[range]);
      if (keeps_state(range)) {
        if (const auto applied = applied_.extract(range))
          values = std::move(applied.mapped());
        else
          apply_slice(range, values, slice);
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
    before_.clear();
  }

  [[nodiscard]] const RangeValues* applied(RangeId range) const override {
    const auto found = applied_.find(range);
    return found == applied_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] ShardState shard_state() const override {
    ShardState state;
    if (applied_.size() == before_.size())
      for (const auto& [range, values] : applied_) state.emplace(range, values.slots);
    return state;
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
  /// Returns how many elements and counts a range has.
  [[nodiscard]] std::size_t elements_of(RangeId range) const {
    return this->places().errors[range + 1] - this->places().errors[range];
  }

  /// Applies the sum of a range. `slice` begins with it, and the numbers of the workers follow.
  void apply_slice(RangeId range, RangeValues& values, std::span<const T> slice) {
    const std::size_t count = elements_of(range);
    if (const double weights = this->weights_at(slice, count); weights > 0)
      this->apply_sum(range, values, slice.first(count), weights);
  }

  /// The values before the sum in progress, and after it, of the ranges of this worker's shards.
  std::map<RangeId, RangeValues> before_;
  std::map<RangeId, RangeValues> applied_;
};

}  // namespace starling::core
