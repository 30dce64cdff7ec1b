#include "starling/models/data/source/raw_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// The most classes that are guessed, and the largest label if the user asks for classes.
constexpr std::size_t guessed_classes_max = 100;
constexpr float class_label_max = 1'000'000;

/// Returns the different labels, ascending. Stops after `count_max` + 1 of them.
std::vector<float> distinct_labels(const std::vector<float>& labels, std::size_t count_max) {
  std::vector<float> distinct;
  for (const float label : labels) {
    const auto at = std::ranges::lower_bound(distinct, label);
    if (at != distinct.end() && *at == label) continue;
    distinct.insert(at, label);
    if (distinct.size() > count_max) break;
  }
  return distinct;
}

bool is_whole(float label) { return std::trunc(label) == label; }

bool are_minus_and_plus_one(const std::vector<float>& distinct) {
  return distinct == std::vector<float>{-1, 1};
}

/// Returns a labelling of classes if the labels look like classes, else one of real targets.
Labelling guess_labelling(const std::vector<float>& labels) {
  const auto distinct = distinct_labels(labels, guessed_classes_max);
  if (are_minus_and_plus_one(distinct)) return {.classes = 2, .first_label = -1, .is_signed = true};
  const std::size_t k = distinct.size();
  const bool may_be_classes =
      k >= 2 && k <= guessed_classes_max && (distinct[0] == 0 || distinct[0] == 1);
  if (!may_be_classes || !std::ranges::all_of(distinct, is_whole)) return {};
  if (distinct.back() - distinct[0] != static_cast<float>(k - 1)) return {};
  return {.classes = k, .first_label = distinct[0]};
}

Error bad_label(const RawTable& raw, std::size_t row, const std::string& valid) {
  return Error{raw.source + ": label " + print_number(static_cast<double>(raw.labels[row])) +
               " of record " + std::to_string(row + 1) + " is not a class; valid: " + valid};
}

/// Returns a labelling of classes whose names are these numbers.
Labelling named_by_numbers(const std::vector<float>& distinct) {
  Labelling labelling{.classes = distinct.size()};
  for (const float label : distinct)
    labelling.names.push_back(std::to_string(static_cast<std::size_t>(label)));
  return labelling;
}

/// Returns a labelling of classes, for which the user or the format asked. The first class is 0 or
/// 1. If at most `guessed_classes_max` numbers occur as labels, and they are at most half of the
/// numbers from the first class to the largest label, only the numbers that occur are classes:
/// labels 2 and 4 make two classes. Refuses labels that are not classes.
Result<Labelling> infer_classes(const RawTable& raw) {
  if (are_minus_and_plus_one(distinct_labels(raw.labels, 2))) return Labelling{2, -1, true};
  for (std::size_t row = 0; row < raw.labels.size(); ++row) {
    const float label = raw.labels[row];
    if (!is_whole(label) || label < 0 || label > class_label_max)
      return bad_label(raw, row,
                       "whole numbers 0..k-1 or 1..k with k <= 1000000, or -1 and +1 throughout");
  }
  const auto [smallest, largest] = std::ranges::minmax(raw.labels);
  if (smallest == largest)
    return Error{raw.source + ": every label is " + print_number(static_cast<double>(smallest)) +
                 ", but a classification needs at least two classes"};
  const float first = smallest >= 1 ? 1 : 0;
  const auto distinct = distinct_labels(raw.labels, guessed_classes_max);
  if (distinct.size() <= guessed_classes_max &&
      2 * static_cast<float>(distinct.size()) <= largest - first + 1)
    return named_by_numbers(distinct);
  if (largest - first >= class_label_max)
    return Error{raw.source + ": labels from " +
                 std::to_string(static_cast<std::size_t>(smallest)) + " to " +
                 std::to_string(static_cast<std::size_t>(largest)) +
                 " name more than 1000000 classes; valid: at most 1000000"};
  return Labelling{.classes = static_cast<std::size_t>(largest - first) + 1, .first_label = first};
}

/// The labels are indices into raw.labelling->names. Turns them into indices of the same names in
/// `names`, the training data's class names.
Result<void> map_to_class_names(RawTable& raw, const std::vector<std::string>& names) {
  std::vector<float> numbers;
  for (const std::string& name : raw.labelling->names) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      return Error{raw.source + ": has a class '" + name + "', which the training data lack; " +
                   suggest(name, names)};
    numbers.push_back(static_cast<float>(at - names.begin()));
  }
  for (float& label : raw.labels) label = numbers.at(static_cast<std::size_t>(label));
  return {};
}

/// The labels are indices into raw.labelling->names. Turns each into the number that its name is,
/// as in folders of images that are called 0, 1 and so on.
Result<void> map_to_numbers(RawTable& raw, const Labelling& labelling) {
  std::vector<float> numbers;
  for (const std::string& name : raw.labelling->names) {
    const auto number = parse_number(name);
    if (!number)
      return Error{raw.source + ": has a class '" + name + "', but the training data have " +
                   print_classes(labelling) + "; valid: classes whose names are such numbers"};
    numbers.push_back(static_cast<float>(*number));
  }
  for (float& label : raw.labels) label = numbers.at(static_cast<std::size_t>(label));
  return {};
}

/// The labels are numbers. Turns them into indices of the names that are these numbers.
Result<void> map_to_named_numbers(RawTable& raw, const std::vector<std::string>& names) {
  std::vector<float> numbers;
  for (const std::string& name : names) {
    const auto number = parse_number(name);
    numbers.push_back(number ? static_cast<float>(*number)
                             : std::numeric_limits<float>::quiet_NaN());  // equals no label
  }
  for (std::size_t row = 0; row < raw.labels.size(); ++row) {
    const auto at = std::ranges::find(numbers, raw.labels[row]);
    if (at == numbers.end()) {
      const std::string name = print_number(static_cast<double>(raw.labels[row]));
      return Error{raw.source + ": has a class '" + name + "' in record " +
                   std::to_string(row + 1) + ", which the training data lack; " +
                   suggest(name, names)};
    }
    raw.labels[row] = static_cast<float>(at - numbers.begin());
  }
  return {};
}

/// Turns the labels from the form in which they are written into class indices.
Result<void> map_to_classes(RawTable& raw, const Labelling& labelling) {
  if (raw.labelling && !raw.labelling->names.empty()) {
    if (!labelling.names.empty()) return map_to_class_names(raw, labelling.names);
    if (auto mapped = map_to_numbers(raw, labelling); !mapped) return mapped;
  } else if (!labelling.names.empty()) {
    return map_to_named_numbers(raw, labelling.names);
  }
  for (std::size_t row = 0; row < raw.labels.size(); ++row) {
    const auto index = find_class(raw.labels[row], labelling);
    if (!index) return bad_label(raw, row, print_classes(labelling));
    raw.labels[row] = *index;
  }
  return {};
}

}  // namespace

std::optional<float> find_class(float label, const Labelling& labelling) {
  const float index = labelling.is_signed ? (label + 1) / 2 : label - labelling.first_label;
  if (!is_whole(index) || index < 0 || index >= static_cast<float>(labelling.classes))
    return std::nullopt;
  return index;
}

std::string print_classes(const Labelling& labelling) {
  if (labelling.is_signed) return "-1 and +1";
  const auto first = static_cast<std::size_t>(labelling.first_label);
  return "whole numbers " + std::to_string(first) + " to " +
         std::to_string(first + labelling.classes - 1);
}

std::vector<std::size_t> image_of(std::span<const std::uint64_t> shape) {
  if (shape.size() == 3) return {shape[1], shape[2], 1};
  const bool may_be_grey = shape.size() == 4 && shape[1] == 1 && shape[3] > 4;
  if (shape.size() != 4 || may_be_grey) return {};
  return {shape[1], shape[2], shape[3]};
}

Result<Labelling> infer_labelling(const RawTable& raw) {
  if (!raw.has_labels) return Labelling{};
  if (raw.labelling && raw.labelling->names.size() == 1)
    return Error{raw.source + ": has one class, '" + raw.labelling->names[0] +
                 "', but a classification needs at least two"};
  if (raw.labelling) return *raw.labelling;
  if (!raw.task) return guess_labelling(raw.labels);
  if (*raw.task == LabelKind::values) return Labelling{};
  return infer_classes(raw);
}

Result<Table> to_table(RawTable raw, const Labelling& labelling) {
  if (raw.labels.empty()) return Error{raw.source + ": holds no rows"};
  if (raw.labels.size() > UINT32_MAX)
    return Error{raw.source + ": holds " + std::to_string(raw.labels.size()) +
                 " rows; at most 4294967295 are possible"};
  if (labelling.classes > 0 && raw.has_labels)
    if (auto mapped = map_to_classes(raw, labelling); !mapped) return std::move(mapped).error();
  const auto build = [&](auto& x) {
    return Table{raw.features, labelling.classes, std::move(x), std::move(raw.labels)};
  };
  Table table = std::visit(build, raw.x);
  table.true_weights = std::move(raw.true_weights);
  table.labelling = labelling;
  table.has_labels = raw.has_labels;
  table.ids = std::move(raw.ids);
  table.encoding = std::move(raw.encoding);
  table.first_index = raw.first_index;
  table.image = std::move(raw.image);
  return table;
}

}  // namespace starling::models
