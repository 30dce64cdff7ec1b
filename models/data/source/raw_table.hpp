/// RawTable, which readers and generators of data return, and its conversion to a Table. A RawTable
/// holds the labels as the data source writes them, before classes are numbered. Internal to the
/// code that makes tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/data/source/source.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// The number of values that readers of binary files read at once. They allocate memory only for
/// values that they have read, so that a wrong header cannot make them allocate too much.
inline constexpr std::size_t chunk_values = std::size_t{1} << 16U;

struct RawTable {
  /// The name of the file or generator, for messages.
  std::string source{};
  std::size_t features = 0;
  std::variant<Table::Dense, Table::Sparse, Table::Mapped> x{};
  /// The labels as written, one for each row; zeros if the data has none.
  std::vector<float> labels{};
  bool has_labels = true;
  /// The name of each row; empty if rows have no names.
  std::vector<std::string> ids{};
  std::shared_ptr<const Encoding> encoding{};
  /// The index of the first feature in sparse text.
  std::uint64_t first_index = 1;
  /// The kind of the labels: classes or real targets. Set if the user or the file format decides
  /// it; if absent, infer_labelling() infers it.
  std::optional<LabelKind> task{};
  /// Set by readers and generators that know what the labels mean.
  std::optional<Labelling> labelling{};
  /// As Table::true_weights.
  std::vector<float> true_weights{};
  /// As Table::image.
  std::vector<std::size_t> image{};
};

/// Returns the Table::image of an array of this shape, whose first axis has the rows: [rows,
/// height, width] or [rows, height, width, channels]. Returns an empty shape for other arrays, and
/// for [rows, 1, height, width], which probably has grey images with the channel first: a model
/// then guesses the shape from the number of features.
[[nodiscard]] std::vector<std::size_t> image_of(std::span<const std::uint64_t> shape);

/// Returns the labelling of `raw`: raw.labelling if it is set, else one inferred from the labels.
/// Classes are written 0..k-1, 1..k, or -1 and +1. If raw.task is absent, the labels are
/// classes if k is 2 to 100 and all k classes occur; else they are real targets. If raw.task is
/// LabelKind::classes, some of the k classes may be missing, and labels may be up to 1,000,000; if
/// at most 100 classes and at most half of the k classes occur, the labels that occur are the
/// classes.
Result<Labelling> infer_labelling(const RawTable& raw);

/// Returns the index of the class that the number `label` stands for; nullopt if it stands for no
/// class. Requires: labelling.classes > 0.
[[nodiscard]] std::optional<float> find_class(float label, const Labelling& labelling);

/// Returns the classes as they are written, "-1 and +1" or "whole numbers 0 to 9".
[[nodiscard]] std::string print_classes(const Labelling& labelling);

/// Converts `raw` to a Table. `labelling` decides what the labels mean; it may be another table's.
/// Refuses labels that are not among its classes.
Result<Table> to_table(RawTable raw, const Labelling& labelling);

}  // namespace starling::models
