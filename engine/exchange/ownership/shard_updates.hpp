/// Internal: how a Shard applies updates to the values of a range. Only shard.cpp includes this
/// file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "starling/base/sole_owner.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::core {

/// Replaces `buffer` by a copy if someone else still reads it.
template <class T>
void make_writable(std::shared_ptr<Buffer>& buffer) {
  if (is_sole_owner(buffer)) return;
  buffer = Buffer::copy_of<T>(std::as_const(*buffer).as<T>());
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

/// Applies the sample-weighted mean of a round's pushes once; `samples` is their number of samples.
/// Sums in the order of the workers, so that the result is reproducible. Changes only the units
/// (rows in row-sparse ranges, else the whole range) that some push contains.
template <class T>
void Shard<T>::apply_mean(RangeId id, HeldRange& range, std::span<const Push> round,
                          std::uint64_t samples) {
  const Range& shape = options_.layout->ranges[id];
  const std::size_t unit_size = shape.row_size > 0 ? shape.row_size : shape.count;
  mean_.assign(shape.count, T{0});
  touched_.assign(shape.count / unit_size, false);
  for (const Push& push : round) {
    if (push.samples == 0) continue;
    const T share =
        static_cast<T>(static_cast<double>(push.samples) / static_cast<double>(samples));
    for_each_piece<T>(shape, push.update, [&](std::size_t from, std::span<const T> update) {
      models::axpy(share, update, std::span{mean_}.subspan(from, update.size()));
      for (std::size_t u = from / unit_size; u < (from + update.size()) / unit_size; ++u)
        touched_[u] = true;
    });
  }
  if (std::ranges::find(touched_, true) == touched_.end()) return;
  ++range.updates;
  for (std::size_t u = 0; u < touched_.size();) {
    std::size_t end = u;
    while (end < touched_.size() && touched_[end]) ++end;
    if (end > u) {
      make_writable<T>(range.value);
      make_writable<T>(range.slots);
      apply_piece(id, range, u * unit_size,
                  std::span<const T>{mean_}.subspan(u * unit_size, (end - u) * unit_size), 1);
    }
    u = end + 1;
  }
}

template <class T>
void Shard<T>::apply(RangeId id, HeldRange& range, const Slice& update, double weight) {
  make_writable<T>(range.value);
  make_writable<T>(range.slots);
  for_each_piece<T>(options_.layout->ranges[id], update,
                    [&](std::size_t from, std::span<const T> piece) {
                      apply_piece(id, range, from, piece, weight);
                    });
}

/// Applies an update of consecutive elements, segment by segment. The first element has index
/// `from` in the range.
template <class T>
void Shard<T>::apply_piece(RangeId id, HeldRange& range, std::size_t from,
                           std::span<const T> update, double weight) {
  const Range& shape = options_.layout->ranges[id];
  const auto value = range.value->template as<T>();
  const auto slots = range.slots->template as<T>();
  for (const Segment& segment : shape.segments) {
    const std::size_t first = std::max(from, segment.offset);
    const std::size_t last = std::min(from + update.size(), segment.offset + segment.count);
    if (first >= last) continue;
    const auto part = value.subspan(first, last - first);
    const auto change = update.subspan(first - from, last - first);
    const auto& parameter = options_.layout->parameters[segment.parameter];
    if (const auto* merge = std::get_if<Merge<T>>(&options_.applier)) {
      (*merge)({segment.parameter, segment.parameter_offset + first - segment.offset}, part,
               change);
      continue;
    }
    if (!parameter.trained) {
      models::axpy(static_cast<T>(weight), change, part);
      continue;
    }
    const auto& gradients = std::get<GradientApplier>(options_.applier);
    models::apply<T>(gradients.optimizer, part, change,
                     slots.empty() ? slots : slots.subspan(first), shape.count,
                     {.rate_scale = weight * models::factor(gradients.schedule, range.samples),
                      .l2 = parameter.decay ? gradients.l2 : 0,
                      .t = range.updates});
  }
}

}  // namespace starling::core
