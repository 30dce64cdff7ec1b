/// The result of a reader of data, whose labels still are as they are written in the data, and the
/// step that turns it into a Table. Internal to the readers of data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Files whose rows have more features than this are refused.
inline constexpr std::uint64_t features_max = std::uint64_t{1} << 31U;
/// The number of values of a binary file that are read at once. If a wrong header promises more
/// values than the file holds, memory for them is never allocated.
inline constexpr std::size_t chunk_values = std::size_t{1} << 16U;

struct RawTable {
  /// The name of the file, or of the source, for messages.
  std::string source{};
  std::size_t features = 0;
  std::variant<Table::Dense, Table::Sparse> x{};
  /// The labels as written, one for each row; zeros if the data has none.
  std::vector<float> labels{};
  bool has_labels = true;
  /// The name of each row; empty if rows have no names.
  std::vector<std::string> ids{};
  std::shared_ptr<const Encoding> encoding{};
  /// The index of the first feature in sparse text.
  std::uint64_t first_index = 1;
  /// The task that the user or the format decides; if absent, infer_labelling() guesses it.
  std::optional<LabelKind> task{};
  /// Set by readers and generators that know what the labels mean.
  std::optional<Labelling> labelling{};
  /// As Table::truth.
  std::vector<float> truth{};
};

/// Returns the labelling of `raw`: raw.labelling if it is set, else one inferred from the labels.
/// Classes are written 0..k-1, 1..k, or -1 and +1. If no task is set, labels are classes if they
/// are written like that with 2 to 100 different values and every class between the smallest and
/// the largest occurs, else real targets. If the task is LabelKind::classes, not every class need
/// occur.
Result<Labelling> infer_labelling(const RawTable& raw);

/// Makes a Table of `raw` whose labels mean what `labelling` says, which may be another table's.
/// Refuses labels that are not among its classes.
Result<Table> finish(RawTable raw, const Labelling& labelling);

}  // namespace starling::models
