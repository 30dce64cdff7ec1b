#include "starling/tools/train/init_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "starling/base/text.hpp"
#include "starling/engine/work/gradients.hpp"

namespace starling::program {
namespace {

std::string print(std::optional<models::Scale> scale) {
  return models::print(scale.value_or(models::Scale::none));
}

std::string task_of(const models::Table& table) {
  return table.classes() > 0 ? std::to_string(table.classes()) + " classes" : "real targets";
}

/// Describes the numbers that stand for classes: "begin with 1" or "are written -1 and +1".
std::string numbering_of(const models::Labelling& labels) {
  return labels.is_signed ? "are written -1 and +1"
                          : "begin with " + print_number(static_cast<double>(labels.first_label));
}

/// Returns the names of the classes; "that are numbers" if they have no names.
std::string names_of(const models::Labelling& labelling) {
  std::string text;
  for (const std::string& name : labelling.names)
    text += (text.empty() ? "" : ", ") + printable(name);
  return text.empty() ? "that are numbers" : text;
}

/// Refuses data with other columns or categories than the stored model's training data, because the
/// model would mistake one feature for another.
Result<void> check_columns(const StoredModel& stored, const models::Table& train) {
  const auto& known = stored.notes.shape->encoding;
  if (!known || !train.encoding) return {};
  const auto& columns = train.encoding->columns;
  for (std::size_t c = 0; c < std::min(columns.size(), known->columns.size()); ++c) {
    const models::Column& stored_column = known->columns[c];
    const models::Column& column = columns[c];
    if (stored_column.name != column.name)
      return Error{
          fmt::format("{}: was trained on a column '{}' where the data have '{}'; valid: "
                      "the same columns in the same order",
                      stored.path, printable(stored_column.name), printable(column.name))};
    if (stored_column.categories != column.categories)
      return Error{
          fmt::format("{}: was trained on other categories of column {} '{}' than the "
                      "data have; valid: data with the same categories",
                      stored.path, c + 1, printable(column.name))};
  }
  return {};
}

Result<void> check_labels(const StoredModel& stored, const models::Table& train) {
  const models::Table& known = *stored.notes.shape;
  if (train.classes() != known.classes())
    return Error{fmt::format("{}: was trained on {}, the data have {}; valid: data of {}",
                             stored.path, task_of(known), task_of(train), task_of(known))};
  const models::Labelling& labels = train.labelling;
  if (labels.names != known.labelling.names)
    return Error{
        fmt::format("{}: was trained on the classes {}, the data have {}; valid: labels of "
                    "the same texts",
                    stored.path, names_of(known.labelling), names_of(labels))};
  const bool is_alike = labels.is_signed == known.labelling.is_signed &&
                        labels.first_label == known.labelling.first_label;
  if (train.classes() == 0 || is_alike) return {};
  return Error{
      fmt::format("{}: was trained on classes that {}, the classes of the data {}; valid: labels "
                  "numbered alike",
                  stored.path, numbering_of(known.labelling), numbering_of(labels))};
}

}  // namespace

Result<StoredModel> read_init(Job& job) {
  auto stored = read_model(job.init, job.accepts_missing_checksum ? Trust::any : Trust::checked);
  if (!stored) return stored;
  const ModelNotes& notes = stored->notes;
  if (job.element_type && *job.element_type != notes.element_type)
    return Error{
        fmt::format("{}: holds parameters in {}, and dtype says {}; valid: {}, or no dtype",
                    job.init, program::print(notes.element_type), program::print(*job.element_type),
                    program::print(notes.element_type))};
  if (job.data.scale && *job.data.scale != *notes.data.scale)
    return Error{fmt::format(
        "{}: was trained on data of scale {}, which its parameters go with, and "
        "scale says {}; valid: {}, or no scale",
        job.init, print(notes.data.scale), print(job.data.scale), print(notes.data.scale))};
  if (job.model.empty()) job.model = notes.model;
  job.element_type = notes.element_type;
  job.data.scale = notes.data.scale;
  return stored;
}

Result<void> check_shape(const StoredModel& stored, const models::Table& table) {
  if (!stored.notes.shape) return {};
  const models::Table& known = *stored.notes.shape;
  if (table.features() != known.features()) {
    const std::string features = print_count(known.features(), "feature");
    return Error{fmt::format("{}: was trained on {}, the data have {}; valid: data of {}",
                             stored.path, features, table.features(), features)};
  }
  if (table.is_sparse() && table.first_index != known.first_index)
    return Error{
        fmt::format("{}: was trained on features that count from {}, the features of the data "
                    "count from {}; valid: base={}",
                    stored.path, known.first_index, table.first_index, known.first_index)};
  if (auto alike = check_columns(stored, table); !alike) return alike;
  return check_labels(stored, table);
}

Result<void> check_init(const StoredModel& stored, const AnyModel& model, const AnyData& train) {
  if (model.print() != stored.notes.model)
    return Error{
        fmt::format("{}: holds the model {}, not {}; valid: the model of the file, or no model",
                    stored.path, stored.notes.model, model.print())};
  const models::Table* table = train.table();
  return table == nullptr ? Result<void>{} : check_shape(stored, *table);
}

Result<TrainAndTest> scale_like_stored(const StoredModel& stored, TrainAndTest data) {
  if (!stored.notes.shape) return data;
  auto train = scale_like(*stored.notes.shape, data.train);
  if (!train) return std::move(train).error();
  data.train = *std::move(train);
  if (!data.test) return data;
  auto test = scale_like(*stored.notes.shape, *data.test);
  if (!test) return std::move(test).error();
  data.test = *std::move(test);
  return data;
}

Result<std::vector<core::RangeState>> initial_states(const StoredModel& stored,
                                                     const AnyModel& model,
                                                     const actor::JobOptions& options) {
  const auto weights = weights_in(stored, model);
  if (!weights) return weights.error();
  return std::visit(
      [&]<class T>(const std::vector<T>& w) {
        return core::to_ranges<T>(model.layout(options), w);
      },
      *weights);
}

}  // namespace starling::program
