#include <algorithm>
#include <memory>

#include "starling/models/data/formats/input_file.hpp"
#include "starling/models/data/formats/npy_array.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

Error wrong_shape(const NpyArray& array, const std::string& what) {
  return Error{array.name + ": its shape is " + array.print_shape() + "; " + what};
}

/// Returns the number of values in a row. Refuses a shape that does not have rows of features.
Result<std::uint64_t> row_size(const NpyArray& x) {
  if (x.shape.size() < 2)
    return wrong_shape(x, "valid: [rows, features] or [rows, height, width, channels]");
  const std::uint64_t row = x.size() / x.shape[0];
  if (row > features_max)
    return wrong_shape(x, "valid: up to " + std::to_string(features_max) + " numbers a row");
  const auto may_be_colours = [&](std::size_t axis) {
    return x.shape[axis] == 3 || x.shape[axis] == 4;
  };
  if (x.shape.size() == 4 && may_be_colours(1) && !may_be_colours(3) && x.shape[3] != 1)
    return wrong_shape(
        x,
        "it looks like images with the channels first; valid: [rows, height, width, channels], "
        "as x.transpose(0, 2, 3, 1) makes it");
  return row;
}

/// Refuses labels `y` that are not one for each row of `x`.
Result<void> check_labels(const NpyArray& x, const NpyArray& y) {
  const bool has_one_per_row = y.shape.size() == 1 || (y.shape.size() == 2 && y.shape[1] == 1);
  if (!has_one_per_row)
    return wrong_shape(y,
                       "valid for labels: [rows] or [rows, 1], as y.argmax(1) makes from one "
                       "column for each class");
  if (y.shape[0] == x.shape[0]) return {};
  return wrong_shape(
      y, "the shape of " + x.name + " is " + x.print_shape() + "; valid: a label for each row");
}

/// Makes a table of the array's values, without labels. Unsigned bytes are scaled to [0, 1], like
/// the pixels of images.
RawTable make_features(NpyArray x, std::uint64_t features) {
  if (x.is_uint8)
    for (float& value : x.values) value /= 255;
  RawTable raw{.source = x.name, .features = features};
  raw.image = image_of(x.shape);
  if (x.file)
    raw.x = Table::Mapped{std::move(x.file), x.values_in_file, {}};
  else
    raw.x = Table::Dense{std::move(x.values)};
  return raw;
}

Result<NpyArray> read_file(const std::string& path) {
  auto opened = InputFile::open(path);
  if (!opened) return std::move(opened).error();
  InputFile& file = *opened;
  return read_npy_array({.read = [&](std::span<std::byte> out) { return file.read(out); },
                         .content_max = file.content_max(),
                         .name = path});
}

}  // namespace

Result<RawTable> make_raw_table(NpyArray x, NpyArray* y) {
  const auto features = row_size(x);
  if (!features) return features.error();
  if (y != nullptr)
    if (auto valid = check_labels(x, *y); !valid) return std::move(valid).error();
  const std::uint64_t rows = x.shape[0];
  RawTable raw = make_features(std::move(x), *features);
  raw.has_labels = y != nullptr;
  raw.labels = y != nullptr ? std::move(y->values) : std::vector<float>(rows);
  return raw;
}

Result<RawTable> make_raw_table_with_label_column(NpyArray x, bool label_is_first) {
  if (x.shape.size() != 2 || x.shape[1] < 2)
    return wrong_shape(x, "valid if a column is the label: [rows, columns], 2 columns or more");
  const std::uint64_t columns = x.shape[1];
  std::vector<float> labels;
  labels.reserve(x.shape[0]);
  std::size_t to = 0;
  for (std::size_t from = 0; from < x.values.size(); ++from) {
    const std::uint64_t column = from % columns;
    if (column == (label_is_first ? 0 : columns - 1))
      labels.push_back(x.values[from]);
    else
      x.values[to++] = x.values[from];
  }
  x.values.resize(to);
  x.values.shrink_to_fit();
  RawTable raw = make_features(std::move(x), columns - 1);
  raw.labels = std::move(labels);
  return raw;
}

Result<RawTable> read_npy(const NpySource& source) {
  auto x = source.is_mapped ? map_npy_array(source.file) : read_file(source.file);
  if (!x) return std::move(x).error();
  Result<RawTable> raw = Error{};
  if (!source.label_column.empty()) {
    raw = make_raw_table_with_label_column(std::move(*x), source.label_column == "first");
  } else if (source.label_file.empty()) {
    raw = make_raw_table(std::move(*x), nullptr);
  } else {
    auto y = read_file(source.label_file);
    if (!y) return std::move(y).error();
    raw = make_raw_table(std::move(*x), &*y);
    if (raw) raw->source += "," + source.label_file;
  }
  if (raw) raw->task = source.task;
  return raw;
}

}  // namespace starling::models
