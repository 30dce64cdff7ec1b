/// The built-in data set: rows of features, dense or sparse, and one label each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/mapped_file.hpp"
#include "starling/base/result.hpp"
#include "starling/models/encoding.hpp"

namespace starling::models {

/// The stored entries of one sparse row; columns ascend.
struct SparseRow {
  std::span<const std::uint32_t> columns;
  std::span<const float> values;
};

/// The mapping between labels as they are written in the data's source and labels of a Table.
struct Labelling {
  /// The number of classes; 0 for real targets.
  std::size_t classes = 0;
  /// The label that is written for class 0. Not used for real targets.
  float first_label = 0;
  /// True if the labels are written -1 and +1 and become the classes 0 and 1.
  bool is_signed = false;
  /// A real target y becomes (y - shift) / divisor in a scaled Table.
  float shift = 0;
  float divisor = 1;
  /// The name of each class; empty if the labels are written as numbers.
  std::vector<std::string> names = {};

  /// Returns the label as it stands in the data's source; the class index if the classes have
  /// names.
  [[nodiscard]] float original(float label) const {
    if (classes == 0) return label * divisor + shift;
    return is_signed ? 2 * label - 1 : label + first_label;
  }

  /// Returns original(label) as text, or the name of the class if it has one.
  [[nodiscard]] std::string text(float label) const;

  bool operator==(const Labelling&) const = default;
};

/// The scaling of a Table's features: x' = (x - shift) / divisor. Both vectors have one element for
/// each feature, or are empty if the features are not scaled.
struct Scaling {
  std::vector<float> shift;
  std::vector<float> divisor;

  bool operator==(const Scaling&) const = default;
};

/// An immutable data set. Dense tables hold size() x features() floats, or leave them in a mapped
/// file; sparse tables hold compressed rows (8 bytes for each stored entry). A label is a class
/// index if classes() > 0, else a real target.
class Table {
 public:
  struct Dense {
    /// Row-major, size x features.
    std::vector<float> values;
  };
  struct Sparse {
    /// The index in `columns` and `values` at which each row starts, and, last, their size.
    std::vector<std::uint64_t> starts{0};
    std::vector<std::uint32_t> columns;
    std::vector<float> values;
  };
  /// Dense rows in a file, from which the system reads a row when it is used. The values may be any
  /// floats, and change if another process changes the file. So models must not use them as
  /// indices.
  struct Mapped {
    std::shared_ptr<const MappedFile> file;
    /// The values of all rows of the file, row-major.
    std::span<const float> values;
    /// For each row of the table, its number in the file; empty if the table has all rows of the
    /// file in their order.
    std::vector<std::uint32_t> rows;
  };

  Table() = default;
  /// The labelling is that of classes that are written 0, 1, ..., or of real targets. Requires:
  /// x.values.size() == labels.size() * features.
  Table(std::size_t features, std::size_t classes, Dense x, std::vector<float> labels)
      : labelling{.classes = classes},
        features_(features),
        classes_(classes),
        dense_(std::move(x)),
        labels_(std::move(labels)) {
    STARLING_CHECK(dense_.values.size() == labels_.size() * features_);
  }
  /// The same for sparse rows. Requires: x.starts.size() == labels.size() + 1 and every column <
  /// features.
  Table(std::size_t features, std::size_t classes, Sparse x, std::vector<float> labels)
      : labelling{.classes = classes},
        features_(features),
        classes_(classes),
        is_sparse_(true),
        sparse_(std::move(x)),
        labels_(std::move(labels)) {
    STARLING_CHECK(sparse_.starts.size() == labels_.size() + 1);
  }
  /// The same for rows in a mapped file. Requires: x.file, a label for each row, x.values.size() is
  /// a multiple of features, and all numbers in x.rows are those of rows of the file.
  Table(std::size_t features, std::size_t classes, Mapped x, std::vector<float> labels)
      : labelling{.classes = classes},
        features_(features),
        classes_(classes),
        mapped_(std::move(x)),
        labels_(std::move(labels)) {
    STARLING_CHECK(mapped_.file != nullptr && mapped_.values.size() % features_ == 0);
    STARLING_CHECK(labels_.size() == (mapped_.rows.empty() ? mapped_.values.size() / features_
                                                           : mapped_.rows.size()));
  }

  /// Returns the number of rows.
  [[nodiscard]] std::size_t size() const noexcept { return labels_.size(); }
  [[nodiscard]] std::size_t features() const noexcept { return features_; }
  /// Returns the number of classes; 0 for real targets.
  [[nodiscard]] std::size_t classes() const noexcept { return classes_; }
  [[nodiscard]] bool is_sparse() const noexcept { return is_sparse_; }
  /// True if the rows are in a mapped file.
  [[nodiscard]] bool is_mapped() const noexcept { return mapped_.file != nullptr; }
  /// True if the rows lie one behind the other in memory. Requires: !is_sparse().
  [[nodiscard]] bool has_adjacent_rows() const noexcept { return mapped_.rows.empty(); }
  [[nodiscard]] float label(std::size_t row) const noexcept { return labels_[row]; }

  /// Throws std::logic_error if the rows are sparse.
  [[nodiscard]] std::span<const float> dense_row(std::size_t row) const {
    if (is_sparse_) [[unlikely]]
      throw_other_form();
    if (is_mapped()) [[unlikely]]
      return mapped_.values.subspan(row_in_file(row) * features_, features_);
    return {dense_.values.data() + row * features_, features_};
  }
  /// Throws std::logic_error if the rows are dense.
  [[nodiscard]] SparseRow sparse_row(std::size_t row) const {
    if (!is_sparse_) [[unlikely]]
      throw_other_form();
    const auto from = sparse_.starts[row];
    const auto count = sparse_.starts[row + 1] - from;
    return {{sparse_.columns.data() + from, count}, {sparse_.values.data() + from, count}};
  }

  /// Begins to load `rows`: at most about 512 KiB into the processor's second-level cache or, if
  /// the table is mapped, all of them into memory. Requires: each < size().
  void prefetch(std::span<const std::uint32_t> rows) const noexcept;

  /// Returns the number of stored values: size x features for dense tables.
  [[nodiscard]] std::size_t entries() const noexcept {
    return is_sparse_ ? sparse_.values.size() : labels_.size() * features_;
  }
  /// Returns the bytes of memory that features and labels take, without those in a mapped file.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return dense_.values.capacity() * sizeof(float) + labels_.capacity() * sizeof(float) +
           sparse_.starts.capacity() * sizeof(std::uint64_t) +
           sparse_.columns.capacity() * sizeof(std::uint32_t) +
           mapped_.rows.capacity() * sizeof(std::uint32_t) +
           sparse_.values.capacity() * sizeof(float);
  }

  /// Returns a table of the rows with these indices, in this order; an index may repeat. Requires:
  /// each < size().
  [[nodiscard]] Table select(std::span<const std::uint32_t> rows) const;

  /// Returns a copy of this table with other values and labels; labelling, ids and all else stay.
  /// Requires the same as the constructors, and one label for each row of this table.
  [[nodiscard]] Table with(Dense x, std::vector<float> labels) const;
  [[nodiscard]] Table with(Sparse x, std::vector<float> labels) const;

  /// The true parameters from which a generator computed the labels, one for each feature; empty if
  /// they are not known.
  std::vector<float> true_weights;
  /// How the labels were written in the data's source.
  Labelling labelling;
  /// False for data without labels, which are only predicted: every label is then 0.
  bool has_labels = true;
  /// The name of each row in the data's source; empty if rows have no names.
  std::vector<std::string> ids;
  /// How a text file's columns became features; null if only their order is known.
  std::shared_ptr<const Encoding> encoding;
  Scaling scaling;
  /// The index by which sparse text (LIBSVM) names the first feature: 0 or 1.
  std::uint64_t first_index = 1;
  /// The height, width and channels of the image in each row; empty if the source does not say
  /// them.
  std::vector<std::size_t> image;

 private:
  /// Returns `table` with this table's public data members, except for `ids`.
  [[nodiscard]] Table with_metadata_of_this(Table table) const;
  /// Asks the system to read these rows. Requires: is_mapped().
  void read_ahead(std::span<const std::uint32_t> rows) const noexcept;
  /// Throws the exception of dense_row() and sparse_row().
  [[noreturn, gnu::cold]] void throw_other_form() const;
  /// Requires: is_mapped().
  [[nodiscard]] std::size_t row_in_file(std::size_t row) const noexcept {
    return mapped_.rows.empty() ? row : mapped_.rows[row];
  }

  std::size_t features_ = 0;
  std::size_t classes_ = 0;
  bool is_sparse_ = false;
  Dense dense_;
  Sparse sparse_;
  Mapped mapped_;
  std::vector<float> labels_;
};

/// Returns an Error if the table has classes, and a label that is not one of them.
[[nodiscard]] Result<void> check_classes(const Table& table);

}  // namespace starling::models
