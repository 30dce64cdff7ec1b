/// The sums of vectors with elements of type T: what make_round_sum() makes.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/allreduce/pieces.hpp"
#include "starling/engine/exchange/allreduce/round_sum.hpp"
#include "starling/engine/exchange/allreduce/sum_offsets.hpp"
#include "starling/models/optimizer/compressions/bf16.hpp"

namespace starling::core {

/// T is float or double.
template <class T>
class TypedRoundSum : public RoundSum {
 public:
  using Rank = collective::Rank;

  /// `window` is collective::ExecutorOptions::window. Requires: the offsets fit the schedule.
  TypedRoundSum(const RoundSumOptions& options, SumOffsets offsets,
                const collective::Schedule& schedule, std::uint32_t window)
      : options_(options),
        offsets_(std::move(offsets)),
        program_(std::make_shared<const collective::Program>(
            collective::make_program(schedule, options.self))),
        executor_({.window = window},
                  [this](const auto& instruction, const auto& slice, std::span<T> elements) {
                    on_instruction(instruction, slice, elements);
                  }),
        is_compact_(options.residual != nullptr) {}

  TypedRoundSum(const TypedRoundSum&) = delete;
  TypedRoundSum& operator=(const TypedRoundSum&) = delete;

  [[nodiscard]] bool can_start() const override {
    return started_ == completed_ && !executor_.is_full();
  }

  [[nodiscard]] Bucket next_bucket() const override { return bucket(); }

  void start(Sends& out, const Update* update, Step steps,
             const std::vector<RangeValues>&) override {
    collective::Effects<T> effects;
    executor_.start(effects, ++started_, program_, vector_of(update, steps), offsets_.slices);
    execute(out, std::move(effects));
  }

  void on(Sends& out, Rank from, const SumPiece& piece) override {
    is_compact_ |= piece.values.is_compact;
    collective::Effects<T> effects;
    (void)executor_.on(effects, from, to_piece<T>(piece));
    execute(out, std::move(effects));
  }

  void on(Sends& out, Rank from, const SumAck& ack) override {
    collective::Effects<T> effects;
    (void)executor_.on(effects, from, to_ack(ack));
    execute(out, std::move(effects));
  }

  [[nodiscard]] bool is_complete() const override { return !sum_.empty(); }

  [[nodiscard]] std::vector<std::optional<Contribution>> contributions() const override {
    return contributions_at(sum_, offsets_.workers.front());
  }

  void apply(std::vector<RangeValues>& ranges) override {
    const double weights = weights_at(sum_, offsets_.workers.front());
    for (RangeId range = bucket().first; range < bucket().end && weights > 0; ++range)
      apply_sum(range, ranges[range], offsets_.of_range(std::span<const T>{sum_}, range), weights);
    sum_.clear();
  }

 protected:
  [[nodiscard]] const RoundSumOptions& options() const { return options_; }
  [[nodiscard]] const SumOffsets& offsets() const { return offsets_; }
  [[nodiscard]] const Bucket& bucket() const { return offsets_.bucket; }

  /// Called as collective::Executor::Hook.
  virtual void on_instruction(const collective::Instruction& instruction,
                              const collective::SliceId& slice, std::span<T> elements) {
    if (options_.residual && instruction.kind == collective::Instruction::Kind::send)
      round_to_bf16(offsets_.errors[bucket().first] + slice.first, elements);
  }
  /// True if the pieces of this round of the schedule may be compressed.
  [[nodiscard]] virtual bool may_compress(std::uint32_t) const { return true; }

  /// Rounds elements to bfloat16, and keeps their errors from index `first_error` on. Does not
  /// round the elements that follow those of the ranges: they hold bytes (sum_offsets.hpp), which
  /// rounding would not change.
  void round_to_bf16(std::size_t first_error, std::span<T> elements) const {
    if constexpr (std::is_same_v<T, float>) {
      const std::span<float> errors{options_.residual->pending};
      const std::size_t end =
          std::min(first_error + elements.size(), offsets_.errors[bucket().end]);
      if (first_error >= end) return;
      models::Bf16::round(elements.first(end - first_error),
                          errors.subspan(first_error, end - first_error));
    } else {
      STARLING_CHECK(false);
    }
  }

  /// Returns the sum of the weights of the workers, whose elements begin at `offset`.
  [[nodiscard]] double weights_at(std::span<const T> vector, std::size_t offset) const {
    double weights = 0;
    for (const auto& contribution : contributions_at(vector, offset))
      if (contribution) weights += weight_of(contribution->samples);
    return weights;
  }

  /// Applies the sum of a range. `sum` has the range's elements, and after them its counts.
  void apply_sum(RangeId range, RangeValues& values, std::span<const T> sum, double weights) {
    const RoundPart part{changed_part(range, sum, weights), 1};
    if (!part.update.empty())
      options_.applier->apply_round(*options_.layout, range, values, {&part, 1}, scratch_);
  }

  [[nodiscard]] std::vector<T> take_sum() { return std::exchange(sum_, {}); }

 private:
  /// Returns the factor by which the elements of an update are multiplied, so that the sum divided
  /// by the sum of the weights is what apply_round() applies.
  [[nodiscard]] double weight_of(std::uint32_t samples) const {
    return options_.applier->averages_rounds() ? samples : 1;
  }

  [[nodiscard]] std::vector<std::optional<Contribution>> contributions_at(
      std::span<const T> vector, std::size_t offset) const {
    std::vector<std::optional<Contribution>> all(options_.workers);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const std::span<const T> worker = SumOffsets::of_worker(vector, offset, rank);
      if (const Step steps = read_bytes(worker.first(sum_steps_bytes)); steps > 0)
        all[rank] = {steps,
                     static_cast<std::uint32_t>(read_bytes(worker.subspan(sum_steps_bytes)))};
    }
    return all;
  }

  /// Returns this worker's vector; without an update, that of its residual alone.
  [[nodiscard]] std::vector<T> vector_of(const Update* update, Step steps) {
    std::vector<T> vector(offsets_.size);
    if (update != nullptr) {
      if (!update->parts.empty()) is_compact_ |= update->parts.front().values.is_compact;
      for (const std::size_t offset : offsets_.workers) {
        const auto worker = SumOffsets::of_worker(std::span{vector}, offset, options_.self);
        write_bytes(worker.first(sum_steps_bytes), steps);
        write_bytes(worker.subspan(sum_steps_bytes), update->samples);
      }
      const double weight = weight_of(update->samples);
      if (weight > 0)  // an update from no samples may hold any values
        for (const Update::Part& part : update->parts)
          if (bucket().contains(part.range)) write_part(vector, part, static_cast<T>(weight));
    }
    if (options_.residual) add_errors(vector);
    return vector;
  }

  /// Writes the elements of `part`, each times `weight`, into `vector`, and the count 1 for each
  /// unit (unit_size()) that the part changes.
  void write_part(std::vector<T>& vector, const Update::Part& part, T weight) const {
    const Range& range = options_.layout->ranges[part.range];
    const std::size_t unit = unit_size(range);
    const auto elements = offsets_.of_range(std::span{vector}, part.range);
    const auto counts = elements.subspan(range.count);
    const auto values = part.values.as<T>();
    for (std::size_t from = 0; from < values.size(); from += unit) {
      const std::size_t u = part.values.rows ? (*part.values.rows)[from / unit] : from / unit;
      counts[u] = 1;
      for (std::size_t i = 0; i < unit; ++i) elements[u * unit + i] = weight * values[from + i];
    }
  }

  /// Adds the errors of the rounds before, and begins to keep those of this one.
  void add_errors(std::vector<T>& vector) {
    const std::span<const float> errors{options_.residual->errors};
    for (RangeId range = bucket().first; range < bucket().end && !errors.empty(); ++range) {
      const auto elements = offsets_.of_range(std::span{vector}, range);
      std::ranges::transform(elements, errors.subspan(offsets_.errors[range], elements.size()),
                             elements.begin(), std::plus<T>{});
    }
    auto& pending = options_.residual->pending;
    pending.resize(offsets_.errors.back());
    std::fill(pending.begin() + static_cast<std::ptrdiff_t>(offsets_.errors[bucket().first]),
              pending.begin() + static_cast<std::ptrdiff_t>(offsets_.errors[bucket().end]), 0.0F);
  }

  /// Returns the units of a range that some update changes, with the sum of their updates; divided
  /// by the sum of the weights if the applier takes means.
  [[nodiscard]] Slice changed_part(RangeId id, std::span<const T> sum, double weights) const {
    const Range& range = options_.layout->ranges[id];
    const std::size_t unit = unit_size(range);
    const auto counts = sum.subspan(range.count);
    auto rows = std::make_shared<std::vector<std::uint32_t>>();
    for (std::size_t u = 0; u < range.count / unit; ++u)
      if (counts[u] > 0) rows->push_back(static_cast<std::uint32_t>(u));
    const T divisor = options_.applier->averages_rounds() ? static_cast<T>(weights) : T{1};
    auto values = Buffer::make<T>(rows->size() * unit);
    auto to = values->template as<T>().begin();
    for (const std::uint32_t u : *rows)
      for (std::size_t i = 0; i < unit; ++i) *to++ = sum[u * unit + i] / divisor;
    const std::size_t count = rows->size() * unit;
    if (count == range.count) rows = nullptr;
    return {std::move(values), 0, count, std::move(rows)};
  }

  void execute(Sends& out, collective::Effects<T> effects) {
    for (auto& effect : effects) {
      if (auto* completed = std::get_if<collective::Completed<T>>(&effect)) {
        completed_ = completed->collective;
        sum_ = std::move(completed->values);
        continue;
      }
      auto& send = std::get<collective::Send<T>>(effect);
      if (const auto* ack = std::get_if<collective::Ack>(&send.message)) {
        out.emplace_back(send.to, to_message(*ack, options_.epoch));
      } else {
        const auto& piece = std::get<collective::Piece<T>>(send.message);
        out.emplace_back(
            send.to, to_message(piece, options_.epoch, is_compact_ && may_compress(piece.round)));
      }
    }
  }

  RoundSumOptions options_;
  SumOffsets offsets_;
  std::shared_ptr<const collective::Program> program_;
  collective::Executor<T> executor_;
  collective::CollectiveId started_ = 0;
  collective::CollectiveId completed_ = 0;
  /// The sum that was completed last, until it is applied; empty if there is none.
  std::vector<T> sum_;
  RoundScratch scratch_;
  /// True if the workers compress their updates (Slice::is_compact).
  bool is_compact_ = false;
};

}  // namespace starling::core
