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

std::optional<LabelKind> read_task(SpecReader& read) {
  static const std::vector<std::string> words{"class", "value"};
  const std::string word = read.text("task", "");
  if (word == "class") return LabelKind::classes;
  if (word == "value") return LabelKind::values;
  if (!word.empty()) read.refuse("task=" + word + " is unknown; " + suggest(word, words));
  return std::nullopt;
}

bool is_whole(Dtype dtype) { return dtype != Dtype::f32 && dtype != Dtype::f64; }

Error wrong(const std::string& path, const Tensor& tensor, const std::string& what) {
  return Error{path + ": tensor '" + tensor.name + "' is " + tensor.describe() + "; " + what};
}

/// Returns the tensor that has one of two names; an error if both or none exist.
Result<const Tensor*> find(const std::string& path, const File& file, const char* name,
                           const char* other) {
  const Tensor* one = file.find(name);
  const Tensor* two = file.find(other);
  const std::string both = std::string{"'"} + name + "' or '" + other + "'";
  if (one != nullptr && two != nullptr)
    return Error{path + ": has a tensor '" + name + "' and a tensor '" + other +
                 "'; valid: one of them"};
  if (one != nullptr || two != nullptr) return one != nullptr ? one : two;
  std::vector<std::string> names;
  for (const Tensor& tensor : file.tensors) names.push_back(quote(tensor.name));
  return Error{path + ": has no tensor " + both + "; it has: " +
               (names.empty() ? "none"
                              : std::accumulate(names.begin() + 1, names.end(), names.front(),
                                                [](std::string all, const std::string& next) {
                                                  return std::move(all) + ", " + next;
                                                }))};
}

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

Result<std::vector<float>> floats_of(const std::string& path, const Tensor& tensor, float divisor) {
  if (auto fits = ReadBudget{path}.check_total(tensor.size() * sizeof(float)); !fits)
    return std::move(fits).error();
  std::vector<float> values(tensor.size());
  const std::size_t row = tensor.shape[0] == 0 ? 1 : values.size() / tensor.shape[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double number = number_at(tensor, i);
    values[i] = static_cast<float>(number) / divisor;
    const bool is_exact = !is_whole(tensor.dtype) || static_cast<float>(number) == number;
    if (!std::isfinite(values[i]) || !is_exact)
      return Error{path + ": tensor '" + tensor.name + "': sample " + std::to_string(i / row + 1) +
                   " holds what is no finite number that a float holds"};
  }
  return values;
}

/// Returns how many numbers a sample has.
Result<std::size_t> row_size(const std::string& path, const Tensor& x) {
  if (x.shape.size() < 2) return wrong(path, x, "valid: [n, ...]");
  if (x.shape[0] == 0) return wrong(path, x, "it holds no samples");
  const std::uint64_t row = x.size() / x.shape[0];
  if (row == 0 || row > features_max)
    return wrong(path, x, "valid: 1 to " + std::to_string(features_max) + " numbers a sample");
  const auto may_be_colours = [&](std::size_t d) { return x.shape[d] == 3 || x.shape[d] == 4; };
  if (x.shape.size() == 4 && may_be_colours(1) && !may_be_colours(3) && x.shape[3] != 1)
    return wrong(path, x,
                 "images with their colours first; valid: [n, height, width, channels], as "
                 "permute(0, 2, 3, 1) of PyTorch makes it");
  return row;
}

Result<void> check_labels(const std::string& path, const Tensor& x, const Tensor& y) {
  const bool one_each = y.shape.size() == 1 || (y.shape.size() == 2 && y.shape[1] == 1);
  if (!one_each) return wrong(path, y, "valid: [n] or [n, 1]");
  if (y.shape[0] == x.shape[0]) return {};
  return wrong(path, y,
               "but '" + x.name + "' holds " + std::to_string(x.shape[0]) +
                   " samples; valid: a label for each");
}

/// Returns the classes 0 to the largest label, at least two: the meaning of a label does not depend
/// on which labels the file happens to hold.
Result<models::Labelling> classes_of(const std::string& path, const Tensor& y) {
  double most = 1;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double label = number_at(y, i);
    if (!(label >= 0 && label < classes_max) || label != std::floor(label))
      return Error{path + ": tensor '" + y.name + "': sample " + std::to_string(i + 1) +
                   " has the label " + print_number(label) +
                   "; valid: classes 0 to 999999, or task=value"};
    most = std::max(most, label);
  }
  return models::Labelling{
      .classes = static_cast<std::size_t>(most) + 1, .first = 0, .signs = false};
}

Result<models::Table> table_of(const std::string& path, const File& file,
                               std::optional<LabelKind> task) {
  const auto x = find(path, file, "features", "x");
  if (!x) return x.error();
  const auto y = find(path, file, "labels", "y");
  if (!y) return y.error();
  const auto features = row_size(path, **x);
  if (!features) return features.error();
  if (auto fits = check_labels(path, **x, **y); !fits) return std::move(fits).error();
  models::RawTable raw{
      .source = path,
      .features = *features,
      .task = task.value_or(is_whole((*y)->dtype) ? LabelKind::classes : LabelKind::values)};
  if (raw.task == LabelKind::classes) {
    const auto rule = classes_of(path, **y);
    if (!rule) return rule.error();
    raw.labelling = *rule;
  }
  auto labels = floats_of(path, **y, 1);
  if (!labels) return std::move(labels).error();
  auto values = floats_of(path, **x, (*x)->dtype == Dtype::u8 ? 255 : 1);
  if (!values) return std::move(values).error();
  raw.labels = *std::move(labels);
  raw.x = models::Table::Dense{*std::move(values)};
  const auto rule = models::infer_labelling(raw);
  if (!rule) return rule.error();
  return models::finish(std::move(raw), *rule);
}

}  // namespace

Result<models::Table> load_safetensors(SpecReader& read) {
  const std::string path = read.positional();
  const auto task = read_task(read);
  if (path.empty())
    read.refuse(
        "names no file; valid: safetensors:FILE[,task=class|value], no ',' or '=' in a file's "
        "name");
  if (auto fine = read.finish(); !fine) return std::move(fine).error();
  const auto file = safetensors::read(path);
  if (!file) return file.error();
  return table_of(path, *file, task);
}

}  // namespace starling::program
