#include "starling/engine/exchange/applier.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "starling/base/sole_owner.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::core {
namespace {

/// Replaces `buffer` by a copy if readers still hold it.
void make_writable(std::shared_ptr<Buffer>& buffer) {
  if (!is_sole_owner(buffer))
    buffer = Buffer::copy_of(std::as_const(*buffer).bytes(), buffer->element_bytes());
}

/// Calls `piece` for each run of consecutive elements of the range in `slice`, with the index of
/// the run's first element in the range and the run's values.
template <class T, class Piece>
void for_each_piece(const Range& range, const Slice& slice, Piece piece) {
  const auto values = slice.as<T>();
  if (slice.empty()) return;
  if (!slice.rows) return piece(std::size_t{0}, values);
  const auto& rows = *slice.rows;
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    piece(rows[i] * range.row_size, values.subspan(i * range.row_size, (end - i) * range.row_size));
    i = end;
  }
}

/// Calls `part` for each segment that has some of the `count` elements of the range from index
/// `from` on, with the segment and the interval [first, last) of these elements in the range.
template <class Part>
void for_each_segment(const Range& range, std::size_t from, std::size_t count, Part part) {
  for (const Segment& segment : range.segments) {
    const std::size_t first = std::max(from, segment.offset);
    const std::size_t last = std::min(from + count, segment.offset + segment.count);
    if (first < last) part(segment, first, last);
  }
}

template <class T>
class MergeApplier final : public Applier {
 public:
  explicit MergeApplier(Merge<T> merge) : merge_(std::move(merge)) {}

  [[nodiscard]] std::size_t element_bytes() const noexcept override { return sizeof(T); }
  [[nodiscard]] std::size_t slot_count() const noexcept override { return 0; }
  [[nodiscard]] double weight(std::uint32_t, std::size_t) const noexcept override { return 1; }

  void apply(const Layout& layout, RangeId id, RangeValues& values, const Slice& update,
             double) const override {
    ++values.updates;
    make_writable(values.value);
    const Range& range = layout.ranges[id];
    const auto value = values.value->as<T>();
    for_each_piece<T>(range, update, [&](std::size_t from, std::span<const T> piece) {
      for_each_segment(
          range, from, piece.size(),
          [&](const Segment& segment, std::size_t first, std::size_t last) {
            merge_({segment.parameter, segment.parameter_offset + first - segment.offset},
                   value.subspan(first, last - first), piece.subspan(first - from, last - first));
          });
    });
  }

  void apply_round(const Layout& layout, RangeId id, RangeValues& values,
                   std::span<const RoundPart> round, RoundScratch&) const override {
    for (const RoundPart& part : round)
      if (!part.update.empty()) apply(layout, id, values, part.update, 1);
  }
  [[nodiscard]] bool averages_rounds() const noexcept override { return false; }

 private:
  Merge<T> merge_;
};

template <class T>
class GradientApplier final : public Applier {
 public:
  explicit GradientApplier(OptimizerOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::size_t element_bytes() const noexcept override { return sizeof(T); }
  [[nodiscard]] std::size_t slot_count() const noexcept override {
    return models::slot_count(options_.optimizer);
  }
  [[nodiscard]] double weight(std::uint32_t samples, std::size_t workers) const noexcept override {
    const std::size_t round_samples =
        options_.is_batch_of_all ? options_.batch : workers * options_.batch;
    return static_cast<double>(samples) / static_cast<double>(round_samples);
  }

  void apply(const Layout& layout, RangeId id, RangeValues& values, const Slice& update,
             double weight) const override {
    // An update over no samples has no gradient: it must not decay the momentum either.
    if (weight <= 0) return;
    ++values.updates;
    make_writable(values.value);
    make_writable(values.slots);
    for_each_piece<T>(layout.ranges[id], update, [&](std::size_t from, std::span<const T> piece) {
      apply_piece(layout, id, values, from, piece, weight);
    });
  }

  void apply_round(const Layout& layout, RangeId id, RangeValues& values,
                   std::span<const RoundPart> round, RoundScratch& scratch) const override;

 private:
  void apply_piece(const Layout& layout, RangeId id, const RangeValues& values, std::size_t from,
                   std::span<const T> update, double weight) const;

  OptimizerOptions options_;
};

/// Applies an update of consecutive elements, the first of which has index `from` in the range,
/// segment by segment.
template <class T>
void GradientApplier<T>::apply_piece(const Layout& layout, RangeId id, const RangeValues& values,
                                     std::size_t from, std::span<const T> update,
                                     double weight) const {
  const Range& range = layout.ranges[id];
  const auto value = values.value->template as<T>();
  const auto slots = values.slots->template as<T>();
  for_each_segment(
      range, from, update.size(), [&](const Segment& segment, std::size_t first, std::size_t last) {
        const auto part = value.subspan(first, last - first);
        const auto change = update.subspan(first - from, last - first);
        const auto& parameter = layout.parameters[segment.parameter];
        if (!parameter.trained) return models::axpy(static_cast<T>(weight), change, part);
        models::apply<T>(options_.optimizer, part, change,
                         slots.empty() ? slots : slots.subspan(first), range.count,
                         {.rate_scale = weight * models::factor(options_.schedule, values.samples),
                          .l2 = parameter.decay ? options_.l2 : 0,
                          .t = values.updates});
      });
}

/// Applies the sample-weighted mean of the pushes once. Changes only the units (rows, or the whole
/// range) that some push contains.
template <class T>
void GradientApplier<T>::apply_round(const Layout& layout, RangeId id, RangeValues& values,
                                     std::span<const RoundPart> round,
                                     RoundScratch& scratch) const {
  std::uint64_t samples = 0;
  for (const RoundPart& part : round) samples += part.samples;
  const Range& range = layout.ranges[id];
  const std::size_t unit_size = range.row_size > 0 ? range.row_size : range.count;
  if (!scratch.sum || scratch.sum->size() < range.count) scratch.sum = Buffer::make<T>(range.count);
  const std::span<T> sum = scratch.sum->template as<T>().first(range.count);
  std::ranges::fill(sum, T{0});
  std::vector<bool>& touched = scratch.touched;
  touched.assign(range.count / unit_size, false);
  for (const RoundPart& part : round) {
    if (part.samples == 0) continue;
    const T share =
        static_cast<T>(static_cast<double>(part.samples) / static_cast<double>(samples));
    for_each_piece<T>(range, part.update, [&](std::size_t from, std::span<const T> update) {
      models::axpy(share, update, sum.subspan(from, update.size()));
      for (std::size_t u = from / unit_size; u < (from + update.size()) / unit_size; ++u)
        touched[u] = true;
    });
  }
  if (std::ranges::find(touched, true) == touched.end()) return;
  ++values.updates;
  make_writable(values.value);
  make_writable(values.slots);
  for (std::size_t u = 0; u < touched.size();) {
    std::size_t end = u;
    while (end < touched.size() && touched[end]) ++end;
    if (end > u)
      apply_piece(layout, id, values, u * unit_size,
                  std::span<const T>{sum}.subspan(u * unit_size, (end - u) * unit_size), 1);
    u = end + 1;
  }
}

template <class T>
void mix_elements(Buffer& values, const Slice& other, double part) {
  const auto into = values.as<T>();
  const auto from = other.as<T>();
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] += static_cast<T>(part) * (from[i] - into[i]);
}

}  // namespace

void Applier::mix(RangeValues& values, const Slice& other, double part) const {
  make_writable(values.value);
  if (element_bytes() == sizeof(float))
    mix_elements<float>(*values.value, other, part);
  else
    mix_elements<double>(*values.value, other, part);
}

template <class T>
ApplierPtr gradient_applier(OptimizerOptions options) {
  return std::make_shared<GradientApplier<T>>(std::move(options));
}
template <class T>
ApplierPtr merge_applier(Merge<T> merge) {
  return std::make_shared<MergeApplier<T>>(std::move(merge));
}

template ApplierPtr gradient_applier<float>(OptimizerOptions);
template ApplierPtr gradient_applier<double>(OptimizerOptions);
template ApplierPtr merge_applier<float>(Merge<float>);
template ApplierPtr merge_applier<double>(Merge<double>);

bool fits(const Layout& layout, const Applier& applier, const RangeState& state) {
  const std::size_t width = applier.element_bytes();
  if (state.range >= layout.ranges.size() || state.value.rows || state.slots.rows) return false;
  const Range& range = layout.ranges[state.range];
  const Range slots{0, applier.slot_count() * range.count, 0, {}};
  return fits(range, state.value, width) &&
         (state.slots.empty() || fits(slots, state.slots, width));
}

RangeValues values_of(const Layout& layout, const Applier& applier, const RangeState& state) {
  const std::size_t width = applier.element_bytes();
  const std::size_t slots = applier.slot_count() * layout.ranges[state.range].count;
  return {.value = Buffer::copy_of(state.value.bytes(), width),
          .slots = state.slots.empty() ? Buffer::zeros(slots, width)
                                       : Buffer::copy_of(state.slots.bytes(), width),
          .updates = state.updates,
          .samples = state.samples};
}

bool has_rows(const Range& range, const Rows& rows) {
  if (!rows) return true;
  if (range.row_size == 0) return false;
  if (rows->empty()) return true;
  return rows->back() < range.count / range.row_size &&
         std::ranges::adjacent_find(*rows, std::greater_equal<>{}) == rows->end();
}

Slice slice_of(const Range& range, const RangeValues& values, const Rows& rows) {
  const std::shared_ptr<Buffer>& all = values.value;
  if (!rows || range.row_size == 0) return {all, 0, all->size(), nullptr};
  const std::size_t count = rows->size() * range.row_size;
  auto chosen = Buffer::make(count, all->element_bytes());
  const std::size_t row_bytes = range.row_size * all->element_bytes();
  auto to = chosen->bytes().begin();
  for (const std::uint32_t row : *rows)
    to = std::ranges::copy(std::as_const(*all).bytes().subspan(row * row_bytes, row_bytes), to).out;
  return {std::move(chosen), 0, count, rows};
}

void put_slice(const Range& range, RangeValues& values, const Slice& slice) {
  make_writable(values.value);
  const std::span<std::byte> all = values.value->bytes();
  std::span<const std::byte> from = slice.bytes();
  if (!slice.rows) {
    std::ranges::copy(from, all.begin());
    return;
  }
  const std::size_t row_bytes = range.row_size * values.value->element_bytes();
  for (const std::uint32_t row : *slice.rows) {
    std::ranges::copy(from.first(row_bytes), all.subspan(row * row_bytes).begin());
    from = from.subspan(row_bytes);
  }
}

}  // namespace starling::core
