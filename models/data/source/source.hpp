/// Names where a data set comes from, in the grammar of flags, job files and code:
///
///     idx:IMAGES,LABELS
///     cifar10:FILE[,FILE...]
///     csv:FILE[,label=last|first|none|NAME][,id=NAME][,task=class|value]
///         [,missing=mean|drop|refuse][,ignore=NAME,...][,category=NAME,...]
///         [,separator=comma|semicolon|tab|pipe][,decimal=point|comma][,comment=#][,header=yes|no]
///     libsvm:FILE[,features=N][,base=0|1][,task=class|value]
///     npy:FILE[,LABELS][,label=last|first][,task=class|value][,mapped=yes]
///     npz:FILE[,features=NAME][,labels=NAME|none][,task=class|value]
///     images:FOLDER[,size=HxW][,channels=1|3]
///     digits[:n=6000]
///     linear[:d=1000,n=20000,noise=0.1]
///     ratings[:users=500,items=400,rank=8,n=40000,noise=0.1]
///
/// The name of a file must not contain `,` or `=`. For data of another kind, users build a Table
/// themselves. Plain values; thread-safe to read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// A source whose rows would have more features than this is refused.
inline constexpr std::uint64_t features_max = std::uint64_t{1} << 31U;

/// The kind of labels: class indices or real targets; `task=class|value` in the text.
/// infer_labelling() guesses the kind if the user does not set it.
enum class LabelKind { classes, values };

/// Images and labels in the IDX format of MNIST, gzip or plain. Labels are classes.
struct IdxSource {
  std::string images;
  std::string labels;
  bool operator==(const IdxSource&) const = default;
};

/// CIFAR-10's binary files, gzip or plain: 32 x 32 x 3 pixels in [0, 1], 10 classes.
struct Cifar10Source {
  /// At least one file. The rows of all files follow each other in this order.
  std::vector<std::string> files;
  bool operator==(const Cifar10Source&) const = default;
};

/// The handling of missing values.
/// - mean: a missing number becomes its column's mean; a row whose category is missing belongs to
///   none of the categories;
/// - drop: rows with a missing value are left out;
/// - refuse: a missing value is an error.
enum class Missing { mean, drop, refuse };

/// Cells separated by commas or another character, one row on each line, with or without a header.
/// Columns hold numbers or categories.
struct CsvSource {
  std::string file;
  /// The column of labels: `last`, `first`, `none`, or its name in the header, or without a header
  /// its number, which counts from 1. Absent: the last column.
  std::optional<std::string> label = std::nullopt;
  /// The column that names the rows. Empty: the first column if its name in the header is empty,
  /// else no column.
  std::string id = {};
  std::optional<LabelKind> task = std::nullopt;
  /// Absent: mean if the training data were read with missing=mean, else refuse.
  std::optional<Missing> missing = std::nullopt;
  /// Columns that are not read.
  std::vector<std::string> ignored = {};
  /// Columns of numbers that are read as categories.
  std::vector<std::string> categories = {};
  /// The character between cells. Absent: the one of , ; tab and | that occurs most often in the
  /// first row.
  std::optional<char> separator = std::nullopt;
  /// True if numbers are written with a decimal comma, as in 3,14.
  bool has_decimal_commas = false;
  /// True to skip all lines that begin with #; false to skip only those before the first row.
  bool has_comments = false;
  /// True if the first row is a header. Absent: the `header` of `training_source` decides; if that
  /// is absent too, or is true although the row does not name all columns of the training data, the
  /// row is a header if all its cells are text.
  std::optional<bool> header = std::nullopt;
  /// The training data, whose columns, categories and labels the file must have; nullptr if the
  /// file itself is the training data. Not part of the printed text.
  std::shared_ptr<const Table> training_table = nullptr;
  /// The source of the training data, if it is CSV too. If this source names no label column, the
  /// label column of the training data counts. If this source names neither `id` nor `ignored`, and
  /// the file has no header, those of the training data count. Not part of the printed text.
  std::shared_ptr<const CsvSource> training_source = nullptr;
  bool operator==(const CsvSource&) const = default;
};

/// Sparse text: `label [qid:N] index:value index:value ...`.
struct LibsvmSource {
  std::string file;
  /// The number of features; 0: the largest index in the file decides it.
  std::uint64_t features = 0;
  std::optional<LabelKind> task = std::nullopt;
  /// The index of the first feature, 0 or 1; absent: 0 if the file holds an index 0, else 1.
  std::optional<std::uint64_t> base = std::nullopt;
  /// The training file that decided `base`, for messages; empty if the user decided it. Not part of
  /// the printed text.
  std::string base_decided_by = {};
  /// The number of features of the training data; 0: unknown. Test data with at most as many
  /// features need no option features=N, even if they hold few values. Not part of the printed
  /// text.
  std::uint64_t training_features = 0;
  bool operator==(const LibsvmSource&) const = default;
};

/// Arrays in NumPy's format: [rows, ...] features, and a label for each row.
struct NpySource {
  std::string file;
  /// The file of labels; empty if no separate file holds them.
  std::string label_file = {};
  /// `last` or `first`: the column of `file` that holds the labels; empty if no column does.
  std::string label_column = {};
  std::optional<LabelKind> task = std::nullopt;
  /// True if the features stay in `file`, and are read when they are used (Table::Mapped).
  bool is_mapped = false;
  bool operator==(const NpySource&) const = default;
};

/// Arrays in one NumPy archive.
struct NpzSource {
  std::string file;
  /// The names of the arrays of features and of labels. Empty: a usual name, such as x_train or y.
  /// labels=`none`: the data have no labels.
  std::string features = {};
  std::string labels = {};
  std::optional<LabelKind> task = std::nullopt;
  bool operator==(const NpzSource&) const = default;
};

/// PNG and JPEG images, one subfolder for each class, pixels in [0, 1].
struct ImagesSource {
  std::string folder;
  /// The size to which images are resized, in pixels; 0: images are not resized, and all must have
  /// the same size.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  /// 1 (grey) or 3 (red, green, blue); 0: that of the training data or, without training data, that
  /// of most images.
  std::uint32_t channels = 0;
  /// The number of features of the training data, which decides the channels if the user does not;
  /// 0: unknown. Not part of the printed text.
  std::size_t training_features = 0;
  bool operator==(const ImagesSource&) const = default;
};

/// Digits 0-9 that the program draws: n images of 28 x 28 pixels in [0, 1], 10 classes.
struct DigitsSource {
  std::uint64_t n = 6000;
  bool operator==(const DigitsSource&) const = default;
};

/// n rows of d standard normal features; label = x . truth + noise * N(0, 1), where truth is one
/// vector of true parameters for all rows.
struct LinearSource {
  std::uint64_t d = 1000;
  std::uint64_t n = 20000;
  double noise = 0.1;
  bool operator==(const LinearSource&) const = default;
};

/// n ratings. The features are a user id and an item id; the label is the element (user, item) of a
/// random users x items matrix, plus noise * N(0, 1). The matrix has the given rank, and its
/// elements have variance 1.
struct RatingsSource {
  std::uint64_t users = 500;
  std::uint64_t items = 400;
  std::uint64_t rank = 8;
  std::uint64_t n = 40000;
  double noise = 0.1;
  bool operator==(const RatingsSource&) const = default;
};

/// One of the sources above.
struct Source {
  std::variant<IdxSource, Cifar10Source, CsvSource, LibsvmSource, NpySource, NpzSource,
               ImagesSource, DigitsSource, LinearSource, RatingsSource>
      kind = DigitsSource{};

  /// Parses text in the grammar at the top of this file. Opens no file.
  static Result<Source> parse(std::string_view text);

  /// Returns text that parse() reads back to the same value. Leaves out options with their default
  /// value, except options of generators.
  [[nodiscard]] std::string print() const;

  bool operator==(const Source&) const = default;
};

/// Returns the name of each kind of source and one line of help, in the order of `--help`.
[[nodiscard]] const std::vector<std::pair<std::string, std::string>>& source_names();

}  // namespace starling::models
