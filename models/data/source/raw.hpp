/// The result of a reader, before its labels are given their meaning. For readers of data only.
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
/// So many values of a binary file are read at once, so that what a wrong header announces is never
/// allocated before the file has shown that it is there.
inline constexpr std::size_t chunk_values = std::size_t{1} << 16U;

struct RawTable {
  /// The file, or the source, as messages name it.
  std::string place{};
  std::size_t features = 0;
  std::variant<Table::Dense, Table::Sparse> x{};
  /// The labels as written, one for each row; zeros where the data has none.
  std::vector<float> labels{};
  bool has_labels = true;
  /// The name of each row; empty where rows have none.
  std::vector<std::string> ids{};
  std::shared_ptr<const Encoding> encoding{};
  /// The index of the first feature in sparse text.
  std::uint64_t first_index = 1;
  /// The task that the user set; guessed where absent.
  std::optional<LabelKind> task{};
  /// Set by generators, which know the labelling beforehand.
  std::optional<Labelling> labelling{};
  std::vector<float> truth{};
};

/// Returns the meaning of `raw`'s labels. Classes are written 0..k-1, 1..k, or -1 and +1. Where no
/// task is set, labels are classes if they are so written with 2 to 100 different values and every
/// class between the smallest and the largest occurs, else real targets. Where the task is classes,
/// a class may be missing.
Result<Labelling> label_rule(const RawTable& raw);

/// Gives labels their meaning by `rule`, which may be another table's; refuses labels that are not
/// among its classes.
Result<Table> finish(RawTable raw, const Labelling& rule);

}  // namespace starling::models
