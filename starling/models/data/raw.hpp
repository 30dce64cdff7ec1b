/// What a reader found, before its labels are given their meaning. For readers of data only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/source.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

struct RawTable {
  /// The file, or the source, for messages.
  std::string place{};
  std::size_t features = 0;
  std::variant<Table::Dense, Table::Sparse> x{};
  /// As written, one a row; zeros where there are none.
  std::vector<float> labels{};
  bool has_labels = true;
  /// The name of each row; empty where rows have none.
  std::vector<std::string> ids{};
  std::shared_ptr<const Encoding> encoding{};
  /// The index of the first feature in sparse text.
  std::uint64_t first_index = 1;
  /// As asked; guessed where absent.
  std::optional<Task> task{};
  /// Known beforehand by generators.
  std::optional<Labelling> labelling{};
  std::vector<float> truth{};
};

/// The meaning of `raw`'s labels. Classes are written 0..k-1, 1..k, or -1 and +1. Where no task is
/// asked, labels are classes if they are so written with 2 to 100 different values and none left
/// out between the smallest and the largest, else real targets. Where classes are asked, a class
/// may be missing.
Result<Labelling> label_rule(const RawTable& raw);

/// Gives labels their meaning by `rule`, which may be another table's; refuses labels that are not
/// among its classes.
Result<Table> finish(RawTable raw, const Labelling& rule);

}  // namespace starling::models
