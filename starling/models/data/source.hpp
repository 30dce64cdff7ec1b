/// Where a data set comes from, in the grammar of flags, job files and code:
///
///     idx:IMAGES,LABELS
///     cifar10:FILE[,FILE...]
///     csv:FILE[,label=last|first|none|NAME][,id=NAME][,task=class|value][,missing=mean|drop|refuse]
///         [,ignore=NAME,...][,category=NAME,...][,separator=semicolon][,decimal=comma]
///         [,comment=#][,header=yes|no]
///     libsvm:FILE[,features=N][,base=0|1][,task=class|value]
///     npy:FILE[,LABELS][,label=last|first][,task=class|value]
///     npz:FILE[,features=NAME][,labels=NAME|none][,task=class|value]
///     images:FOLDER[,size=HxW][,channels=1|3]
///     digits[:n=6000]
///     linear[:d=1000,n=20000,noise=0.1]
///     ratings[:users=500,items=400,rank=8,n=40000,noise=0.1]
///
/// A file's name holds no `,` and no `=` there. The set is closed: data of another kind is a Table
/// that the user builds. Plain values, safe from any thread.
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

/// What labels are: class indices or real targets. See label_rule() for how it is guessed where
/// nobody says.
enum class Task { classes, values };

/// Images and labels in the IDX format of MNIST, gzip or plain. Labels are classes.
struct IdxSource {
  std::string images;
  std::string labels;
  bool operator==(const IdxSource&) const = default;
};

/// CIFAR-10's binary files, gzip or plain, one behind the other: 32 x 32 x 3 pixels in [0, 1], 10
/// classes.
struct Cifar10Source {
  /// At least one.
  std::vector<std::string> files;
  bool operator==(const Cifar10Source&) const = default;
};

/// The fate of a value that is missing: a number is taken for its column's mean, a category for
/// none; its row is left out; it is refused.
enum class Missing { mean, drop, refuse };

/// Cells separated by commas or another character, one row a line, with or without a header.
/// Columns hold numbers or categories.
struct CsvSource {
  std::string file;
  /// The column of labels: `last`, `first`, `none`, or one that is named; the last where it is not
  /// said. A column is named by the header, or by its number from 1 where there is none.
  std::optional<std::string> label = std::nullopt;
  /// The column that names the rows; empty for the first where the header has no name for it.
  std::string id = {};
  std::optional<Task> task = std::nullopt;
  /// Where nobody says: mean where the training data had it, else refuse.
  std::optional<Missing> missing = std::nullopt;
  /// Columns that are not read.
  std::vector<std::string> ignored = {};
  /// Columns of numbers that stand for categories.
  std::vector<std::string> categories = {};
  /// Absent: the one of , ; tab and | that the first row has most of.
  std::optional<char> separator = std::nullopt;
  bool has_decimal_commas = false;
  /// Lines that begin with # are left out everywhere, not only before the first row.
  bool has_comments = false;
  /// Absent: the first row is a header where it holds no number.
  std::optional<bool> header = std::nullopt;
  /// The shape of the training data, whose columns, categories and labels the file must have; null
  /// where it is the training data. No part of the text.
  std::shared_ptr<const Table> like = nullptr;
  bool operator==(const CsvSource&) const = default;
};

/// Sparse text: `label [qid:N] index:value index:value ...`.
struct LibsvmSource {
  std::string file;
  /// Number of features; 0 takes the largest index of the file.
  std::uint64_t features = 0;
  std::optional<Task> task = std::nullopt;
  /// The index of the first feature, 0 or 1; 0 where the file holds an index 0, else 1, where it is
  /// not said.
  std::optional<std::uint64_t> base = std::nullopt;
  /// Names the data that decided `base`, for messages; empty where the user did. No part of the
  /// text.
  std::string base_from = {};
  bool operator==(const LibsvmSource&) const = default;
};

/// Arrays in NumPy's format: [rows, ...] features and a label each.
struct NpySource {
  std::string features;
  /// The file of labels; empty where there is none.
  std::string labels = {};
  /// `last` or `first`: the column of a table that holds the labels; empty for none.
  std::string label = {};
  std::optional<Task> task = std::nullopt;
  bool operator==(const NpySource&) const = default;
};

/// Arrays in one archive of NumPy's.
struct NpzSource {
  std::string file;
  /// Names of arrays; empty for the usual ones, `none` for no labels.
  std::string features = {};
  std::string labels = {};
  std::optional<Task> task = std::nullopt;
  bool operator==(const NpzSource&) const = default;
};

/// PNG and JPEG images, one subfolder a class, pixels in [0, 1].
struct ImagesSource {
  std::string folder;
  /// To what images are resized; 0: all are of one size.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  /// 1 or 3; 0: as most images have.
  std::uint32_t channels = 0;
  /// The features of the training data, which tell the channels where nobody says; 0: unknown. No
  /// part of the text.
  std::size_t features = 0;
  bool operator==(const ImagesSource&) const = default;
};

/// Drawn digits 0-9, 28 x 28 pixels in [0, 1], 10 classes.
struct DigitsSource {
  std::uint64_t n = 6000;
  bool operator==(const DigitsSource&) const = default;
};

/// n rows of d standard normal features; label = x . truth + noise * N(0, 1).
struct LinearSource {
  std::uint64_t d = 1000;
  std::uint64_t n = 20000;
  double noise = 0.1;
  bool operator==(const LinearSource&) const = default;
};

/// n ratings (user id, item id -> real) of a users x items matrix of the given rank and of unit
/// variance, plus noise * N(0, 1).
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

  static Result<Source> parse(std::string_view text);

  /// The form that parse() reads back; options at their default are left out, except that the
  /// generators always say how much they generate.
  [[nodiscard]] std::string print() const;

  bool operator==(const Source&) const = default;
};

/// Every source's name and one line about it, in the order of `--help`.
[[nodiscard]] const std::vector<std::pair<std::string, std::string>>& source_names();

}  // namespace starling::models
