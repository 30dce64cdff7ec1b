#include "starling/models/data/source/raw.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/text.hpp"

namespace starling::models {
namespace {

constexpr std::size_t guessed_classes_max = 100;
constexpr float classes_max = 1'000'000;

/// The different labels, ascending; no more than `most` + 1 of them.
std::vector<float> distinct(const std::vector<float>& labels, std::size_t most) {
  std::vector<float> found;
  for (const float label : labels) {
    const auto at = std::ranges::lower_bound(found, label);
    if (at != found.end() && *at == label) continue;
    found.insert(at, label);
    if (found.size() > most) break;
  }
  return found;
}

bool whole(float label) { return std::trunc(label) == label; }

bool are_signs(const std::vector<float>& found) { return found == std::vector<float>{-1, 1}; }

Labelling guess(const std::vector<float>& labels) {
  const auto found = distinct(labels, guessed_classes_max);
  if (are_signs(found)) return {.classes = 2, .first = -1, .signs = true};
  const std::size_t k = found.size();
  const bool few = k >= 2 && k <= guessed_classes_max && (found[0] == 0 || found[0] == 1);
  if (!few || !std::ranges::all_of(found, whole)) return {};
  if (found.back() - found[0] != static_cast<float>(k - 1)) return {};
  return {.classes = k, .first = found[0]};
}

Error bad_label(const RawTable& raw, std::size_t row, const std::string& valid) {
  return Error{raw.place + ": label " + print_number(static_cast<double>(raw.labels[row])) +
               " of record " + std::to_string(row + 1) + " is not a class; valid: " + valid};
}

Result<Labelling> ask_classes(const RawTable& raw) {
  if (are_signs(distinct(raw.labels, 2))) return Labelling{2, -1, true};
  for (std::size_t row = 0; row < raw.labels.size(); ++row) {
    const float label = raw.labels[row];
    if (!whole(label) || label < 0 || label > classes_max)
      return bad_label(raw, row,
                       "whole numbers 0..k-1 or 1..k with k <= 1000000, or -1 and +1 throughout");
  }
  const auto [least, most] = std::ranges::minmax(raw.labels);
  if (least == most)
    return Error{raw.place + ": every label is " + print_number(static_cast<double>(least)) +
                 ", but a classification needs at least two classes"};
  const float first = least >= 1 ? 1 : 0;
  return Labelling{.classes = static_cast<std::size_t>(most - first) + 1, .first = first};
}

std::string print_classes(const Labelling& rule) {
  if (rule.signs) return "-1 and +1";
  const auto first = static_cast<std::size_t>(rule.first);
  return "whole numbers " + std::to_string(first) + " to " +
         std::to_string(first + rule.classes - 1);
}

/// Classes with names are numbered as those of the training data.
Result<void> map_names(RawTable& raw, const std::vector<std::string>& names) {
  std::vector<float> numbers;
  for (const std::string& name : raw.labelling->names) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      return Error{raw.place + ": has a class '" + name + "', but the training data have none; " +
                   suggest(name, names)};
    numbers.push_back(static_cast<float>(at - names.begin()));
  }
  for (float& label : raw.labels) label = numbers.at(static_cast<std::size_t>(label));
  return {};
}

/// Turns the indices of classes whose names are numbers into those numbers.
Result<void> read_names(RawTable& raw, const Labelling& rule) {
  std::vector<float> numbers;
  for (const std::string& name : raw.labelling->names) {
    const auto number = parse_number(name);
    if (!number)
      return Error{raw.place + ": has a class '" + name + "', but the training data have " +
                   print_classes(rule) + "; valid: classes with such names"};
    numbers.push_back(static_cast<float>(*number));
  }
  for (float& label : raw.labels) label = numbers.at(static_cast<std::size_t>(label));
  return {};
}

Result<void> map_labels(RawTable& raw, const Labelling& rule) {
  if (raw.labelling && !raw.labelling->names.empty()) {
    if (!rule.names.empty()) return map_names(raw, rule.names);
    if (auto read = read_names(raw, rule); !read) return read;
  }
  for (std::size_t row = 0; row < raw.labels.size(); ++row) {
    const float label = raw.labels[row];
    const float index = rule.signs ? (label + 1) / 2 : label - rule.first;
    if (!whole(index) || index < 0 || index >= static_cast<float>(rule.classes))
      return bad_label(raw, row, print_classes(rule));
    raw.labels[row] = index;
  }
  return {};
}

}  // namespace

Result<Labelling> label_rule(const RawTable& raw) {
  if (!raw.has_labels) return Labelling{};
  if (raw.labelling && raw.labelling->names.size() == 1)
    return Error{raw.place + ": has one class, '" + raw.labelling->names[0] +
                 "', but a classification needs at least two"};
  if (raw.labelling) return *raw.labelling;
  if (!raw.task) return guess(raw.labels);
  if (*raw.task == LabelKind::values) return Labelling{};
  return ask_classes(raw);
}

Result<Table> finish(RawTable raw, const Labelling& rule) {
  if (raw.labels.empty()) return Error{raw.place + ": holds no rows"};
  if (raw.labels.size() > UINT32_MAX)
    return Error{raw.place + ": holds " + std::to_string(raw.labels.size()) +
                 " rows; at most 4294967295 are possible"};
  if (rule.classes > 0 && raw.has_labels)
    if (auto mapped = map_labels(raw, rule); !mapped) return std::move(mapped).error();
  const auto build = [&](auto& x) {
    return Table{raw.features, rule.classes, std::move(x), std::move(raw.labels)};
  };
  Table table = std::visit(build, raw.x);
  table.truth = std::move(raw.truth);
  table.labelling = rule;
  table.has_labels = raw.has_labels;
  table.ids = std::move(raw.ids);
  table.encoding = std::move(raw.encoding);
  table.first_index = raw.first_index;
  return table;
}

}  // namespace starling::models
