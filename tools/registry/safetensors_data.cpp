#include "starling/tools/registry/safetensors_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/source/raw_table.hpp"
#include "starling/tools/files/safetensors.hpp"

namespace starling::program {
namespace {

using models::LabelKind;
using safetensors::Dtype;
using safetensors::File;
using safetensors::Tensor;

constexpr std::uint64_t features_max = std::uint64_t{1} << 31U;
constexpr double classes_max = 1'000'000;

std::optional<LabelKind> read_task(SpecReader& options) {
  static const std::vector<std::string> tasks{"class", "value"};
  const std::string task = options.text("task", "");
  if (task == "class") return LabelKind::classes;
  if (task == "value") return LabelKind::values;
  if (!task.empty()) options.refuse("task=" + task + " is unknown; " + suggest(task, tasks));
  return std::nullopt;
}

bool is_integer(Dtype dtype) { return dtype != Dtype::f32 && dtype != Dtype::f64; }

Error shape_error(const std::string& path, const Tensor& tensor, const std::string& reason) {
  return Error{path + ": tensor '" + tensor.name + "' is " + tensor.describe() + "; " + reason};
}

/// Returns the tensor that is called `name` or `alias`; an Error if both or neither exist.
Result<const Tensor*> find_tensor(const std::string& path, const File& file, const char* name,
                                  const char* alias) {
  const Tensor* by_name = file.find(name);
  const Tensor* by_alias = file.find(alias);
  if (by_name != nullptr && by_alias != nullptr)
    return Error{path + ": has a tensor '" + name + "' and a tensor '" + alias +
                 "'; valid: one of them"};
  if (by_name != nullptr || by_alias != nullptr) return by_name != nullptr ? by_name : by_alias;
  std::vector<std::string> names;
  for (const Tensor& tensor : file.tensors) names.push_back(quote(tensor.name));
  return Error{path + ": has no tensor '" + name + "' or '" + alias + "'; it has: " +
               (names.empty() ? "none"
                              : std::accumulate(names.begin() + 1, names.end(), names.front(),
                                                [](std::string joined, const std::string& next) {
                                                  return std::move(joined) + ", " + next;
                                                }))};
}

/// Returns element `i` of a tensor whose elements are of type T.
template <class T>
double number_at(const Tensor& tensor, std::size_t i) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
  return static_cast<double>(value);
}

double number_at(const Tensor& tensor, std::size_t i) {
  switch (tensor.dtype) {
    case Dtype::f32:
      return static_cast<double>(number_at<float>(tensor, i));
    case Dtype::f64:
      return number_at<double>(tensor, i);
    case Dtype::u64:
      return number_at<std::uint64_t>(tensor, i);
    case Dtype::u8:
      return number_at<std::uint8_t>(tensor, i);
    case Dtype::i32:
      return number_at<std::int32_t>(tensor, i);
    case Dtype::i64:
      return number_at<std::int64_t>(tensor, i);
  }
  return 0;
}

/// Returns the elements divided by `divisor`. Returns an Error if one is not finite as a float, or
/// is an integer that a float cannot hold exactly.
Result<std::vector<float>> floats_of(const std::string& path, const Tensor& tensor, float divisor) {
  if (auto fits = ReadBudget{path}.check_total(tensor.size() * sizeof(float)); !fits)
    return std::move(fits).error();
  std::vector<float> values(tensor.size());
  const std::size_t row_length = tensor.shape[0] == 0 ? 1 : values.size() / tensor.shape[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double number = number_at(tensor, i);
    values[i] = static_cast<float>(number) / divisor;
    // From 2^53 on, `number` may be a rounded integer.
    const bool is_exact = !is_integer(tensor.dtype) ||
                          (std::abs(number) < 0x1p53 && static_cast<float>(number) == number);
    if (!std::isfinite(values[i]) || !is_exact)
      return Error{path + ": tensor '" + tensor.name + "': sample " +
                   std::to_string(i / row_length + 1) +
                   " holds a number that is not finite or that a float cannot hold"};
  }
  return values;
}

/// Returns how many features a sample has. Returns an Error if the shape of the tensor `x` is
/// invalid.
Result<std::size_t> feature_count(const std::string& path, const Tensor& x) {
  if (x.shape.size() < 2) return shape_error(path, x, "valid: [n, ...]");
  if (x.shape[0] == 0) return shape_error(path, x, "it holds no samples");
  const std::uint64_t row = x.size() / x.shape[0];
  if (row == 0 || row > features_max)
    return shape_error(path, x,
                       "valid: 1 to " + std::to_string(features_max) + " numbers a sample");
  const auto may_be_colours = [&](std::size_t d) { return x.shape[d] == 3 || x.shape[d] == 4; };
  if (x.shape.size() == 4 && may_be_colours(1) && !may_be_colours(3) && x.shape[3] != 1)
    return shape_error(
        path, x,
        "it looks like images with the channels first; valid: [n, height, width, channels], as "
        "permute(0, 2, 3, 1) of PyTorch makes it");
  return row;
}

/// Returns an Error unless the tensor `y` has one number for each sample of `x`.
Result<void> check_label_shape(const std::string& path, const Tensor& x, const Tensor& y) {
  const bool has_one_column = y.shape.size() == 1 || (y.shape.size() == 2 && y.shape[1] == 1);
  if (!has_one_column) return shape_error(path, y, "valid: [n] or [n, 1]");
  if (y.shape[0] == x.shape[0]) return {};
  return shape_error(path, y,
                     "but '" + x.name + "' holds " + std::to_string(x.shape[0]) +
                         " samples; valid: a label for each");
}

/// Returns a labelling with the classes from 0 to the largest label, at least two. A label k is
/// class k, even if not all smaller labels occur in the file.
Result<models::Labelling> labelling_of(const std::string& path, const Tensor& y) {
  double largest = 1;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double label = number_at(y, i);
    if (!(label >= 0 && label < classes_max) || label != std::floor(label))
      return Error{path + ": tensor '" + y.name + "': sample " + std::to_string(i + 1) +
                   " has the label " + print_number(label) +
                   "; valid: classes 0 to 999999, or task=value"};
    largest = std::max(largest, label);
  }
  return models::Labelling{
      .classes = static_cast<std::size_t>(largest) + 1, .first_label = 0, .is_signed = false};
}

Result<models::Table> table_of(const std::string& path, const File& file,
                               std::optional<LabelKind> task) {
  const auto x = find_tensor(path, file, "features", "x");
  if (!x) return x.error();
  const auto y = find_tensor(path, file, "labels", "y");
  if (!y) return y.error();
  const auto features = feature_count(path, **x);
  if (!features) return features.error();
  if (auto valid = check_label_shape(path, **x, **y); !valid) return std::move(valid).error();
  models::RawTable raw{
      .source = path,
      .features = *features,
      .task = task.value_or(is_integer((*y)->dtype) ? LabelKind::classes : LabelKind::values)};
  if (raw.task == LabelKind::classes) {
    const auto labelling = labelling_of(path, **y);
    if (!labelling) return labelling.error();
    raw.labelling = *labelling;
  }
  auto labels = floats_of(path, **y, 1);
  if (!labels) return std::move(labels).error();
  auto values = floats_of(path, **x, (*x)->dtype == Dtype::u8 ? 255 : 1);
  if (!values) return std::move(values).error();
  raw.labels = *std::move(labels);
  raw.x = models::Table::Dense{*std::move(values)};
  raw.image = models::image_of((*x)->shape);
  const auto labelling = models::infer_labelling(raw);
  if (!labelling) return labelling.error();
  return models::to_table(std::move(raw), *labelling);
}

}  // namespace

Result<models::Table> load_safetensors(SpecReader& options) {
  const std::string path = options.positional();
  const auto task = read_task(options);
  if (path.empty())
    options.refuse(
        "names no file; valid: safetensors:FILE[,task=class|value], no ',' or '=' in a file's "
        "name");
  if (auto done = options.finish(); !done) return std::move(done).error();
  const auto file = safetensors::read(path);
  if (!file) return file.error();
  return table_of(path, *file, task);
}

}  // namespace starling::program
