#include "starling/actor/engines/engine_keys.hpp"

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling::actor::detail {
namespace {

/// Returns an Error if the key is row-sparse and one of its rows does not fit into the largest
/// range. A row is never divided between ranges.
Result<void> check_row_length(const models::Parameter& key, std::size_t element_bytes) {
  const std::size_t elements_max = core::range_bytes_max / element_bytes;
  if (!key.row_sparse || key.row_size() <= elements_max) return {};
  return Error{quoted_key(key.name) + ": a row has " + std::to_string(key.row_size()) +
               " elements; valid: at most " + std::to_string(elements_max) +
               ", or a key without rows, which is not made by Tensor::by_rows"};
}

}  // namespace

Result<KeyTable> KeyTable::make(std::vector<models::Parameter> keys, std::size_t element_bytes,
                                std::size_t owners) {
  if (keys.empty()) return Error{"there is no key; valid: at least 1"};
  if (auto valid = models::check(keys, "key"); !valid) return std::move(valid).error();
  KeyTable table;
  for (auto& key : keys) {
    if (auto valid = check_row_length(key, element_bytes); !valid) return std::move(valid).error();
    table.positions_.emplace(key.name, table.names_.size());
    table.append(std::move(key), element_bytes, owners);
  }
  return table;
}

/// Divides the key into ranges of its own, and appends these to the ranges of the earlier keys.
void KeyTable::append(models::Parameter key, std::size_t element_bytes, std::size_t owners) {
  names_.push_back(key.name);
  core::Layout key_layout = core::make_layout({std::move(key)}, element_bytes, owners);
  for (core::Range& range : key_layout.ranges) {
    range.offset += layout_.size;
    for (core::Segment& segment : range.segments) segment.parameter = layout_.parameters.size();
    layout_.ranges.push_back(std::move(range));
  }
  layout_.offsets.push_back(layout_.size);
  layout_.size += key_layout.size;
  layout_.parameters.push_back(std::move(key_layout.parameters.front()));
  range_bounds_.push_back(static_cast<core::RangeId>(layout_.ranges.size()));
}

Result<std::size_t> KeyTable::find(std::string_view name) const {
  const auto at = positions_.find(std::string{name});
  if (at != positions_.end()) return at->second;
  return Error{quoted_key(name) + " is unknown; " + suggest(name, names_)};
}

Result<void> KeyTable::check_selected_rows(std::size_t k,
                                           std::span<const std::uint32_t> rows) const {
  const models::Parameter& parameter = key(k);
  if (!parameter.row_sparse)
    return Error{
        quoted_key(parameter.name) +
        " is dense, so its rows cannot be selected; valid: the whole key, or a key made by "
        "Tensor::by_rows"};
  if (!rows.empty() && rows.back() >= parameter.shape[0])
    return Error{quoted_key(parameter.name) + ": there is no row " + std::to_string(rows.back()) +
                 "; valid: 0 to " + std::to_string(parameter.shape[0] - 1)};
  const auto repeated = std::ranges::adjacent_find(rows);
  if (repeated != rows.end())
    return Error{quoted_key(parameter.name) + ": row " + std::to_string(*repeated) +
                 " is given twice"};
  return {};
}

std::vector<RowPiece> KeyTable::split(std::size_t k, std::span<const std::uint32_t> rows) const {
  std::vector<RowPiece> pieces;
  auto [range_id, end] = ranges(k);
  for (std::size_t i = 0; i < rows.size() && range_id < end; ++range_id) {
    const core::Range& range = layout_.ranges[range_id];
    const auto first_row = static_cast<std::uint32_t>(offset_in_key(range_id) / range.row_size);
    const auto end_row = first_row + static_cast<std::uint32_t>(range.count / range.row_size);
    auto rows_in_range = std::make_shared<std::vector<std::uint32_t>>();
    const std::size_t first_position = i;
    for (; i < rows.size() && rows[i] < end_row; ++i) rows_in_range->push_back(rows[i] - first_row);
    if (!rows_in_range->empty())
      pieces.push_back({range_id, std::move(rows_in_range), first_position});
  }
  return pieces;
}

Result<std::vector<core::RangeRows>> KeyTable::ranges_of(const Selection& selection) const {
  const auto k = find(selection.key);
  if (!k) return k.error();
  std::vector<core::RangeRows> plan;
  if (!selection.rows) {
    for (auto [range_id, end] = ranges(*k); range_id < end; ++range_id)
      plan.push_back({range_id, nullptr});  // null: the whole range
    return plan;
  }
  auto rows = *selection.rows;
  std::ranges::sort(rows);
  if (auto valid = check_selected_rows(*k, rows); !valid) return std::move(valid).error();
  for (RowPiece& piece : split(*k, rows)) plan.push_back({piece.range, std::move(piece.rows)});
  // The plan of an empty selection asks the first range for no rows, so that the key counts as
  // read: StepContext::get() then returns an empty span, and does not throw.
  if (plan.empty())
    plan.push_back({ranges(*k).first, std::make_shared<const std::vector<std::uint32_t>>()});
  return plan;
}

}  // namespace starling::actor::detail
