#include "starling/tools/registry/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/data/missing.hpp"
#include "starling/models/data/split.hpp"
#include "starling/tools/registry/data_hints.hpp"

namespace starling::program {
namespace {

/// Changes the seed for test data, so that a source of the registry returns other samples than for
/// training.
constexpr std::uint64_t test_stream = 0x74657374;

const DataEntry* find_registered_source(const Registry& registry, const std::string& name) {
  const auto at = std::ranges::find(registry.data(), name, &DataEntry::name);
  return at == registry.data().end() ? nullptr : &*at;
}

Error unknown_source(const Registry& registry, const Spec& spec) {
  std::vector<std::string> names;
  for (const auto& entry : registry.data()) names.push_back(entry.name);
  for (const auto& [known, summary] : models::source_names()) names.push_back(known);
  return unknown_data(spec, names);
}

Result<AnyData> as_any(Result<models::Table> table) {
  if (!table) return std::move(table).error();
  return AnyData::of(*std::move(table));
}

Result<AnyData> load_registered_source(const DataEntry& entry, const Spec& spec, std::uint64_t seed,
                                       const models::Table* shape = nullptr) {
  SpecReader options{spec};
  auto loaded = entry.load(options, seed, shape);
  if (auto done = options.finish(); !done) return std::move(done).error();
  if (!loaded) return loaded;
  if (loaded->size() == 0) return Error{entry.name + ": holds no samples"};
  if (loaded->size() > UINT32_MAX) return Error{entry.name + ": holds more than 2^32 - 1 samples"};
  if (const models::Table* table = loaded->table())
    if (auto valid = models::check_classes(*table); !valid)
      return std::move(valid).error().within(entry.name);
  return loaded;
}

/// Returns an Error if the request has more than one of the options that choose the test data.
Result<void> check_test_options(const DataRequest& request) {
  std::vector<std::string> given;
  if (request.test) given.emplace_back("--test");
  if (request.split) given.emplace_back("--split");
  if (request.holdout) given.emplace_back("--holdout");
  if (given.size() < 2) return {};
  std::string flags = given[0];
  for (std::size_t i = 1; i < given.size(); ++i)
    flags += (i + 1 == given.size() ? " and " : ", ") + given[i];
  return Error{flags + " exclude each other; valid: one of --test, --split and --holdout"};
}

/// Divides the data of one source into training and test data.
Result<TrainAndTest> divide(const AnyData& data, const DataRequest& request) {
  if (!data.is_divisible()) {
    if (request.split || request.holdout)
      return Error{"data: " + request.data + ": cannot be divided, for its type has no " +
                   "select(rows); valid: --test SOURCE"};
    return TrainAndTest{data, std::nullopt};
  }
  const auto rows =
      request.split
          ? models::split_first(data.size(), *request.split)
          : models::hold_out(data.size(), request.holdout.value_or(models::holdout_default),
                             request.seed);
  if (!rows) return rows.error();
  TrainAndTest parts{data.select(rows->train), data.select(rows->test)};
  for (const auto& [part, chosen] :
       {std::pair{&parts.train, rows->train.size()}, std::pair{&*parts.test, rows->test.size()}})
    if (part->size() != chosen)
      return Error{"data: " + request.data + ": select(rows) of its type has returned " +
                   print_count(part->size(), "sample") + " for " + print_count(chosen, "row")};
  return parts;
}

/// Loads training and test data from two sources that are not in the registry.
Result<TrainAndTest> load_pair(const std::string& data, const std::string& test,
                               std::uint64_t seed) {
  auto loaded = models::load_pair(models::Source::parse(data).value(),
                                  models::Source::parse(test).value(), seed);
  if (!loaded) return std::move(loaded).error();
  return TrainAndTest{AnyData::of(std::move(loaded->train)), AnyData::of(std::move(loaded->test))};
}

/// Returns the field `task` of a source, which chooses between classes and real targets; null if
/// this kind of source has no such field.
std::optional<models::LabelKind>* task_of(models::Source& source) {
  return std::visit(
      []<class Kind>(Kind& kind) -> std::optional<models::LabelKind>* {
        if constexpr (requires { kind.task; }) return &kind.task;
        return nullptr;
      },
      source.kind);
}

/// Returns an Error if the labels of the test data number the classes in another way than those of
/// the training data, because predictions would then be compared with the wrong classes.
Result<void> check_class_numbering(const AnyData& test,
                                   const std::optional<models::Labelling>& trained) {
  const models::Table* table = test.table();
  if (table == nullptr || !trained || table->classes() == 0 || trained->classes == 0) return {};
  const models::Labelling& tested = table->labelling;
  if (tested.is_signed == trained->is_signed &&
      (tested.is_signed || tested.first_label == trained->first_label))
    return {};
  return Error{"its classes begin with " + print_number(double{tested.original(0)}) +
               ", those of the training data with " + print_number(double{trained->original(0)}) +
               "; valid: labels numbered alike"};
}

/// Returns the table without its rows; nothing if the data is not a table.
std::optional<models::Table> shape_of(const AnyData& data) {
  const models::Table* table = data.table();
  return table == nullptr ? std::nullopt : std::optional{table->select({})};
}

/// Returns true if all labels are whole numbers. Allows for the rounding of labels that were
/// scaled.
bool has_whole_labels(const models::Table& table) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    const float label = table.labelling.original(table.label(row));
    if (std::abs(label - std::round(label)) > 1e-5F * std::abs(label)) return false;
  }
  return true;
}

/// Loads training and test data as load_data() does, but fills no missing numbers.
Result<TrainAndTest> load_parts(const Registry& registry, const DataRequest& request) {
  if (auto valid = check_test_options(request); !valid) return std::move(valid).error();
  if (auto valid = check_data(registry, request.data); !valid)
    return std::move(valid).error().within("data");
  if (request.test)
    if (auto valid = check_data(registry, *request.test); !valid)
      return std::move(valid).error().within("test");
  if (request.test && !is_registered_source(registry, request.data) &&
      !is_registered_source(registry, *request.test))
    return load_pair(request.data, *request.test, request.seed);
  auto data = load_source(registry, request.data, request.seed);
  if (!data) return std::move(data).error().within("data");
  if (auto labelled = check_labels(*data, request.data); !labelled)
    return std::move(labelled).error().within("data");
  if (!request.test) return divide(*data, request);
  auto test = load_test_data(registry, *request.test, request.seed, shape_of(*data), request.data);
  if (!test) return std::move(test).error().within("test");
  return TrainAndTest{*std::move(data), *std::move(test)};
}

/// Replaces each missing number by the mean of its column in the training data.
Result<TrainAndTest> fill_missing_numbers(TrainAndTest data) {
  const models::Table* train = data.train.table();
  if (train == nullptr || !train->encoding || !train->encoding->fills) return data;
  const auto encoding = models::fit_fill_values(*train);
  if (!encoding) return Error{encoding.error()}.within("data");
  if (const models::Table* test = data.test ? data.test->table() : nullptr) {
    if (!test->is_sparse() && test->features() != train->features())
      return Error{"has " + print_count(test->features(), "feature") +
                   ", but the training data have " + std::to_string(train->features())}
          .within("test");
    data.test = AnyData::of(models::filled(*test, *encoding));
  }
  data.train = AnyData::of(models::filled(*train, *encoding));
  return data;
}

/// Returns how many rows fingerprint() goes on after each row whose values it has hashed.
std::size_t fingerprint_stride(const models::Table& table) {
  constexpr std::size_t rows_max = 1024;
  constexpr std::size_t values_max = std::size_t{4} << 20U;
  if (!table.is_mapped()) return 1;
  const std::size_t rows =
      std::clamp<std::size_t>(values_max / std::max<std::size_t>(1, table.features()), 1, rows_max);
  return std::max<std::size_t>(1, table.size() / rows);
}

}  // namespace

bool is_registered_source(const Registry& registry, const std::string& text) {
  const auto spec = Spec::parse(text);
  return spec && find_registered_source(registry, spec->name) != nullptr;
}

Result<void> check_labels(const AnyData& data, const std::string& text) {
  if (data.table() == nullptr || data.table()->has_labels) return {};
  return Error{text +
               ": has no labels, or no more columns than the model has features, so it can only be "
               "predicted; " +
               valid_labels(text)};
}

Result<void> check_data(const Registry& registry, const std::string& text) {
  const auto spec = Spec::parse(text);
  if (!spec) return spec.error();
  if (find_registered_source(registry, spec->name) != nullptr) return {};
  const auto& known = models::source_names();
  if (std::ranges::none_of(known, [&](const auto& source) { return source.first == spec->name; }))
    return unknown_source(registry, *spec);
  const auto source = models::Source::parse(text);
  if (!source) return source.error();
  if (spec->name != "csv" && spec->name != "libsvm") return {};
  return check_text_file(spec->name, files_in(registry, text).front());
}

std::vector<std::string> files_in(const Registry& registry, const std::string& text) {
  const auto spec = Spec::parse(text);
  if (!spec) return {};
  std::vector<std::string> files;
  if (find_registered_source(registry, spec->name) != nullptr) {
    std::error_code ignored;
    for (const auto& [key, value] : spec->options)
      if (std::filesystem::is_regular_file(value, ignored)) files.push_back(value);
    return files;
  }
  const auto source = models::Source::parse(text);
  if (!source) return {};
  if (const auto* idx = std::get_if<models::IdxSource>(&source->kind))
    files = {idx->images, idx->labels};
  if (const auto* cifar10 = std::get_if<models::Cifar10Source>(&source->kind))
    files = cifar10->files;
  if (const auto* csv = std::get_if<models::CsvSource>(&source->kind)) files = {csv->file};
  if (const auto* libsvm = std::get_if<models::LibsvmSource>(&source->kind)) files = {libsvm->file};
  if (const auto* npy = std::get_if<models::NpySource>(&source->kind)) {
    files = {npy->file};
    if (!npy->label_file.empty()) files.push_back(npy->label_file);
  }
  if (const auto* npz = std::get_if<models::NpzSource>(&source->kind)) files = {npz->file};
  if (const auto* images = std::get_if<models::ImagesSource>(&source->kind))
    files = {images->folder};
  return files;
}

Result<AnyData> load_source(const Registry& registry, const std::string& text, std::uint64_t seed) {
  if (auto valid = check_data(registry, text); !valid) return std::move(valid).error();
  const Spec spec = Spec::parse(text).value();
  if (const DataEntry* entry = find_registered_source(registry, spec.name))
    return load_registered_source(*entry, spec, seed);
  return as_any(models::load(models::Source::parse(text).value(), seed));
}

Result<AnyData> load_test_data(const Registry& registry, const std::string& text,
                               std::uint64_t seed, const std::optional<models::Table>& shape,
                               const std::string& training_text) {
  if (auto valid = check_data(registry, text); !valid) return std::move(valid).error();
  const auto labelling = shape ? std::optional{shape->labelling} : std::nullopt;
  const Spec spec = Spec::parse(text).value();
  if (const DataEntry* entry = find_registered_source(registry, spec.name)) {
    auto data =
        load_registered_source(*entry, spec, mix(seed ^ test_stream), shape ? &*shape : nullptr);
    if (!data) return data;
    if (auto valid = check_class_numbering(*data, labelling); !valid)
      return std::move(valid).error().within(text);
    const models::Table* table = data->table();
    if (table != nullptr && shape)
      if (auto fits = models::check_image(table->image, shape->image); !fits)
        return std::move(fits).error().within(text);
    // A test set need not hold the last classes, but a model may predict them.
    if (table != nullptr && labelling && table->classes() > 0 &&
        table->classes() < labelling->classes) {
      const auto& names = table->labelling.names;
      if (names.size() > labelling->names.size() ||
          !std::equal(names.begin(), names.end(), labelling->names.begin()))
        return Error{"its classes have other names than those of the training data"}.within(text);
      models::Table labelled = *table;
      labelled.labelling = *labelling;
      return AnyData::of(std::move(labelled));
    }
    return data;
  }
  models::Source source = models::Source::parse(text).value();
  if (const auto training = models::Source::parse(training_text))
    models::inherit_options(*training, source);
  auto* csv = std::get_if<models::CsvSource>(&source.kind);
  if (csv != nullptr && shape && !shape->is_sparse())
    csv->training_table = std::make_shared<const models::Table>(*shape);
  if (auto* images = std::get_if<models::ImagesSource>(&source.kind); images != nullptr && shape)
    images->training_features = shape->features();
  auto* libsvm = std::get_if<models::LibsvmSource>(&source.kind);
  if (libsvm != nullptr && shape && shape->is_sparse()) {
    libsvm->training_features = shape->features();
    if (!libsvm->base) libsvm->base_decided_by = "the training data";
    if (!libsvm->base) libsvm->base = shape->first_index;
  }
  auto table = models::load_test(source, seed, labelling);
  if (auto fits = table && shape ? models::check_image(table->image, shape->image) : Result<void>{};
      !fits)
    return std::move(fits).error().within(text);
  if (table && csv != nullptr && csv->training_table != nullptr && shape->encoding)
    table = models::filled(*std::move(table), shape->encoding);
  return as_any(std::move(table));
}

Result<TrainAndTest> load_data(const Registry& registry, const DataRequest& request) {
  auto data = load_parts(registry, request);
  if (data) data = fill_missing_numbers(*std::move(data));
  if (!data) return data;
  if (auto labelled = check_labels(data->train, request.data); !labelled)
    return std::move(labelled).error().within("data");
  if (data->test && request.test)
    if (auto labelled = check_labels(*data->test, *request.test); !labelled)
      return std::move(labelled).error().within("test");
  return data;
}

std::optional<OtherTask> other_task(const std::string& text, const AnyData& data) {
  const models::Table* table = data.table();
  auto source = models::Source::parse(text);
  if (table == nullptr || !source || !table->labelling.names.empty()) return std::nullopt;
  auto* task = task_of(*source);
  const bool has_classes = table->classes() > 0;
  if (task == nullptr || !(has_classes || has_whole_labels(*table))) return std::nullopt;
  *task = has_classes ? models::LabelKind::values : models::LabelKind::classes;
  const std::size_t classes = has_classes ? 0 : 2;
  return OtherTask{
      source->print(),
      AnyData::of(table->is_sparse()
                      ? models::Table{table->features(), classes, models::Table::Sparse{}, {}}
                      : models::Table{table->features(), classes, models::Table::Dense{}, {}})};
}

std::string describe(const AnyData& data) {
  const models::Table* table = data.table();
  if (table == nullptr) return std::to_string(data.size()) + " samples";
  return std::to_string(table->size()) + " rows, " + std::to_string(table->features()) +
         (table->is_sparse() ? " sparse features, " : " features, ") +
         (!table->has_labels     ? "no labels"
          : table->classes() > 0 ? std::to_string(table->classes()) + " classes"
                                 : std::string{"real targets"});
}

std::uint64_t fingerprint(const AnyData& data) {
  std::uint64_t hash = mix(data.size());
  const auto add = [&](std::uint64_t word) {
    hash = (std::rotl(hash, 29) ^ word) * 0x9e3779b97f4a7c15U;
  };
  const models::Table* table = data.table();
  const auto add_text = [&](const std::string& text) {
    for (const char c : text + '\n') add(static_cast<unsigned char>(c));
  };
  const auto add_float = [&](float value) { add(std::bit_cast<std::uint32_t>(value)); };
  if (table != nullptr) {
    // The shift and divisor tell apart tables that become equal when they are scaled.
    std::ranges::for_each(table->scaling.shift, add_float);
    std::ranges::for_each(table->scaling.divisor, add_float);
    if (!table->scaling.shift.empty()) {
      add_float(table->labelling.shift);
      add_float(table->labelling.divisor);
    }
    std::ranges::for_each(table->labelling.names, add_text);
    if (table->encoding)
      for (const models::Column& column : table->encoding->columns)
        std::ranges::for_each(column.categories, add_text);
  }
  const std::size_t stride = table != nullptr ? fingerprint_stride(*table) : 1;
  for (std::size_t row = 0; table != nullptr && row < table->size(); ++row) {
    add(std::bit_cast<std::uint32_t>(table->label(row)));
    if (row % stride != 0) continue;
    if (table->is_sparse()) {
      const auto [columns, values] = table->sparse_row(row);
      for (std::size_t i = 0; i < columns.size(); ++i)
        add(std::uint64_t{columns[i]} << 32U | std::bit_cast<std::uint32_t>(values[i]));
    } else {
      for (const float value : table->dense_row(row)) add(std::bit_cast<std::uint32_t>(value));
    }
  }
  for (std::size_t row = 0; table == nullptr && row < data.size(); ++row) {
    const auto label = data.label(row);
    if (!label) break;
    add(std::bit_cast<std::uint64_t>(*label));
  }
  return mix(hash);
}

}  // namespace starling::program
