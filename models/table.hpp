/// The built-in data set: rows of features, dense or sparse, and one label each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/models/encoding.hpp"

namespace starling::models {

/// The stored entries of one sparse row; columns ascend.
struct SparseRow {
  std::span<const std::uint32_t> columns;
  std::span<const float> values;
};

/// How labels as written become labels of a Table, and back.
struct Labelling {
  /// 0 for real targets, which stay as written.
  std::size_t classes = 0;
  /// The label of class 0; meaningless for real targets.
  float first = 0;
  /// -1 and +1 become 0 and 1.
  bool signs = false;
  /// Real targets y are trained on as (y - shift) / divisor.
  float shift = 0;
  float divisor = 1;
  /// The text of each class; empty where labels are numbers.
  std::vector<std::string> names = {};

  /// Returns a Table's label as it was written; for a class with a name, the class index.
  [[nodiscard]] float written(float label) const {
    if (classes == 0) return label * divisor + shift;
    return signs ? 2 * label - 1 : label + first;
  }

  /// Returns written() as text, or the class's name where it has one.
  [[nodiscard]] std::string text(float label) const;

  bool operator==(const Labelling&) const = default;
};

/// How the features of a Table were scaled: x' = (x - shift) / divisor. Both vectors have one
/// element for each feature, or are empty where the features were not scaled.
struct Scaling {
  std::vector<float> shift;
  std::vector<float> divisor;

  bool operator==(const Scaling&) const = default;
};

/// An immutable data set. Dense tables hold size() x features() floats, sparse ones compressed rows
/// (8 bytes a stored entry). A label is a class index where classes() > 0, else a real target.
class Table {
 public:
  struct Dense {
    /// Row-major, size x features.
    std::vector<float> values;
  };
  struct Sparse {
    /// Start of each row in columns/values; one more entry than rows.
    std::vector<std::uint64_t> starts{0};
    std::vector<std::uint32_t> columns;
    std::vector<float> values;
  };

  Table() = default;
  /// Requires: x.values.size() == labels.size() * features.
  Table(std::size_t features, std::size_t classes, Dense x, std::vector<float> labels)
      : features_(features), classes_(classes), dense_(std::move(x)), labels_(std::move(labels)) {
    STARLING_CHECK(dense_.values.size() == labels_.size() * features_);
  }
  /// Requires: x.starts.size() == labels.size() + 1 and every column < features.
  Table(std::size_t features, std::size_t classes, Sparse x, std::vector<float> labels)
      : features_(features),
        classes_(classes),
        is_sparse_(true),
        sparse_(std::move(x)),
        labels_(std::move(labels)) {
    STARLING_CHECK(sparse_.starts.size() == labels_.size() + 1);
  }

  /// Number of rows.
  [[nodiscard]] std::size_t size() const noexcept { return labels_.size(); }
  [[nodiscard]] std::size_t features() const noexcept { return features_; }
  /// Number of classes; 0 where labels are real targets.
  [[nodiscard]] std::size_t classes() const noexcept { return classes_; }
  [[nodiscard]] bool is_sparse() const noexcept { return is_sparse_; }
  [[nodiscard]] float label(std::size_t row) const noexcept { return labels_[row]; }

  /// Requires: !is_sparse().
  [[nodiscard]] std::span<const float> dense_row(std::size_t row) const noexcept {
    return {dense_.values.data() + row * features_, features_};
  }
  /// Requires: is_sparse().
  [[nodiscard]] SparseRow sparse_row(std::size_t row) const noexcept {
    const auto from = sparse_.starts[row];
    const auto count = sparse_.starts[row + 1] - from;
    return {{sparse_.columns.data() + from, count}, {sparse_.values.data() + from, count}};
  }

  /// Begins to bring `rows`, the first 512 KiB of them, into the processor's cache. Requires: each
  /// < size().
  void prefetch(std::span<const std::uint32_t> rows) const noexcept;

  /// Stored entries: size x features for dense tables.
  [[nodiscard]] std::size_t entries() const noexcept {
    return is_sparse_ ? sparse_.values.size() : dense_.values.size();
  }
  /// Bytes held for features and labels.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return dense_.values.capacity() * sizeof(float) + labels_.capacity() * sizeof(float) +
           sparse_.starts.capacity() * sizeof(std::uint64_t) +
           sparse_.columns.capacity() * sizeof(std::uint32_t) +
           sparse_.values.capacity() * sizeof(float);
  }

  /// Returns the rows named by `rows`, in that order; repetitions are allowed. Requires: each <
  /// size().
  [[nodiscard]] Table select(std::span<const std::uint32_t> rows) const;

  /// Returns a table of these values and labels that keeps everything else that this table records
  /// of its data. Requires: as the constructors.
  [[nodiscard]] Table with(Dense x, std::vector<float> labels) const;
  [[nodiscard]] Table with(Sparse x, std::vector<float> labels) const;

  /// The parameters that generated the labels, one for each feature, where a generator knows them.
  std::vector<float> truth;
  /// How the labels were written in the data's source.
  Labelling labelling;
  /// False for data without labels, which is only predicted: every label is then 0.
  bool has_labels = true;
  /// The name of each row in the data's source; empty where rows have no names.
  std::vector<std::string> ids;
  /// How a text file's columns became features; null where only their order is known.
  std::shared_ptr<const Encoding> encoding;
  Scaling scaling;
  /// The index of the first feature in sparse text: 0 or 1.
  std::uint64_t first_index = 1;

 private:
  /// Returns `made` with everything that this table records of its data, except its rows' names.
  [[nodiscard]] Table described(Table made) const;

  std::size_t features_ = 0;
  std::size_t classes_ = 0;
  bool is_sparse_ = false;
  Dense dense_;
  Sparse sparse_;
  std::vector<float> labels_;
};

}  // namespace starling::models
