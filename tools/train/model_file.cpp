#include "starling/tools/train/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "starling/base/memory.hpp"
#include "starling/base/text.hpp"
#include "starling/models/net/layers/shape.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/train/encoding_text.hpp"

namespace starling::program {
namespace {

using safetensors::Metadata;

std::vector<std::uint64_t> shape_of(const models::Parameter& parameter) {
  return {parameter.shape.begin(), parameter.shape.end()};
}

constexpr const char* shift_name = "starling.features.shift";
constexpr const char* divisor_name = "starling.features.divisor";

/// Adds ModelNotes::shape to the metadata.
void add_shape(Metadata& metadata, const models::Table& table) {
  metadata["features"] = std::to_string(table.features());
  metadata["classes"] = std::to_string(table.classes());
  metadata["sparse"] = table.is_sparse() ? "true" : "false";
  if (table.is_sparse()) metadata["first_index"] = std::to_string(table.first_index);
  if (!table.image.empty() && table.features() <= models::volume_max)
    metadata["image"] = models::print_shape(table.image);
  metadata["first_label"] = print_number(static_cast<double>(table.labelling.first_label));
  metadata["signed_labels"] = table.labelling.is_signed ? "true" : "false";
  metadata["target_shift"] = print_number(static_cast<double>(table.labelling.shift));
  metadata["target_divisor"] = print_number(static_cast<double>(table.labelling.divisor));
  if (!table.labelling.names.empty()) metadata["labels"] = print_names(table.labelling.names);
  if (table.encoding) metadata["columns"] = print_encoding(*table.encoding);
}

/// Reads typed values from a file's metadata. After an error it returns default values; finish()
/// returns the first error.
class MetadataReader {
 public:
  MetadataReader(const std::string& path, const Metadata& metadata)
      : path_(path), metadata_(metadata) {}

  [[nodiscard]] bool has(const char* key) const { return metadata_.contains(key); }
  std::string text(const char* key) {
    const auto at = metadata_.find(key);
    if (at != metadata_.end()) return at->second;
    refuse("has no '" + std::string{key} + "' in its metadata");
    return {};
  }
  std::uint64_t count(const char* key) { return read(key, parse_count(text(key))); }
  double number(const char* key) { return read(key, parse_number(text(key))); }
  bool flag(const char* key) { return text(key) == "true"; }
  std::vector<std::string> names(const char* key) { return read(key, parse_names(text(key))); }
  models::Encoding encoding(const char* key) { return read(key, parse_encoding(text(key))); }
  models::Shape shape(const char* key) { return read(key, models::parse_shape(text(key))); }
  models::Scale scale(const char* key) { return read(key, models::parse_scale(text(key))); }
  ElementType type(const char* key) { return read(key, parse_element_type(text(key))); }

  void refuse(const std::string& what) {
    if (error_.empty())
      error_ =
          path_ + ": " + what + "; valid: a file that " + program_name() + " train --save wrote";
  }
  [[nodiscard]] Result<void> finish() const {
    if (error_.empty()) return {};
    return Error{error_};
  }

 private:
  template <class T>
  T read(const char* key, Result<T> value) {
    if (value) return *value;
    refuse("metadata '" + std::string{key} + "': " + value.error().message);
    return T{};
  }

  const std::string& path_;
  const Metadata& metadata_;
  std::string error_;
};

/// The largest number of features, and of classes, that a file may declare. It bounds the memory
/// that a hostile file can demand; no data source has as many.
constexpr std::uint64_t extent_max = std::uint64_t{1} << 31U;

models::Table read_shape(MetadataReader& reader) {
  const std::uint64_t features = reader.count("features");
  const std::uint64_t classes = reader.count("classes");
  if (features > extent_max || classes > extent_max)
    reader.refuse("has " + std::to_string(features) + " features and " + std::to_string(classes) +
                  " classes, more than 2^31");
  models::Table table = reader.flag("sparse")
                            ? models::Table{features, classes, models::Table::Sparse{}, {}}
                            : models::Table{features, classes, models::Table::Dense{}, {}};
  table.labelling = {.classes = classes,
                     .first_label = static_cast<float>(reader.number("first_label")),
                     .is_signed = reader.flag("signed_labels")};
  if (reader.has("first_index")) table.first_index = reader.count("first_index");
  if (table.first_index > 1)
    reader.refuse("has a first_index of " + std::to_string(table.first_index) + ", not 0 or 1");
  if (reader.has("image")) table.image = reader.shape("image");
  if (!table.image.empty() && (table.image.size() != 3 || models::volume(table.image) != features))
    reader.refuse("has an image of " + models::print_shape(table.image) + " for " +
                  print_count(features, "feature"));
  // Files of versions without `scale` do not have these keys.
  if (reader.has("target_shift")) {
    table.labelling.shift = static_cast<float>(reader.number("target_shift"));
    table.labelling.divisor = static_cast<float>(reader.number("target_divisor"));
    if (!(table.labelling.divisor > 0))
      reader.refuse("has a target_divisor that is not above 0: " +
                    print_number(static_cast<double>(table.labelling.divisor)));
  }
  if (reader.has("labels")) {
    table.labelling.names = reader.names("labels");
    if (table.labelling.names.size() != classes)
      reader.refuse("has " + print_count(table.labelling.names.size(), "label") + " for " +
                    std::to_string(classes) + " classes");
  }
  if (reader.has("columns")) {
    auto encoding = reader.encoding("columns");
    if (encoding.features() != features)
      reader.refuse("has columns that make " + print_count(encoding.features(), "feature") +
                    ", not " + std::to_string(features));
    table.encoding = std::make_shared<const models::Encoding>(std::move(encoding));
  }
  return table;
}

/// Reads the scaling of the features into `shape`.
Result<void> read_scaling(const std::string& path, const safetensors::File& file,
                          models::Table& shape) {
  const auto values = [&](const char* name) -> Result<std::vector<float>> {
    const safetensors::Tensor* tensor = file.find(name);
    if (tensor == nullptr) return std::vector<float>{};
    const safetensors::Tensor wanted{{}, safetensors::Dtype::f32, {shape.features()}, {}};
    if (tensor->dtype != wanted.dtype || tensor->shape != wanted.shape)
      return Error{path + ": tensor '" + name + "' is " + tensor->describe() +
                   ", but the model's " + "features need " + wanted.describe()};
    std::vector<float> all(tensor->size());
    std::memcpy(all.data(), tensor->bytes.data(), tensor->bytes.size());
    if (!std::ranges::all_of(all, [](float x) { return std::isfinite(x); }))
      return Error{path + ": tensor '" + name + "' holds values that are not finite"};
    return all;
  };
  auto shift = values(shift_name);
  if (!shift) return std::move(shift).error();
  auto divisor = values(divisor_name);
  if (!divisor) return std::move(divisor).error();
  if (shift->size() != divisor->size())
    return Error{path + ": has one of the tensors '" + shift_name + "' and '" + divisor_name +
                 "', but not the other"};
  if (std::ranges::any_of(*divisor, [](float x) { return !(x > 0); }))
    return Error{path + ": tensor '" + divisor_name + "' holds values that are not above 0"};
  shape.scaling = {*std::move(shift), *std::move(divisor)};
  return {};
}

/// Returns the indices of element `element` of a tensor, in row-major order: "[2, 7]".
std::string indices_text(const std::vector<std::uint64_t>& shape, std::uint64_t element) {
  std::string text;
  for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
    text.insert(0, std::to_string(element % *extent) + (text.empty() ? "" : ", "));
    element /= *extent;
  }
  return "[" + text + "]";
}

/// Appends a parameter's values to `w`. Refuses a tensor of another type or shape, and values that
/// are not finite.
template <class T>
Result<void> read_parameter(const StoredModel& stored, const AnyModel& model,
                            const models::Parameter& parameter, std::vector<T>& w) {
  const std::string location = stored.path + ": tensor '" + parameter.name + "'";
  const safetensors::Tensor* tensor = stored.file.find(parameter.name);
  if (tensor == nullptr) return Error{location + " is missing"};
  const auto shape = shape_of(parameter);
  if (tensor->dtype != safetensors::dtype_of<T> || tensor->shape != shape) {
    const safetensors::Tensor wanted{{}, safetensors::dtype_of<T>, shape, {}};
    return Error{location + " is " + tensor->describe() + ", but the model " + model.print() +
                 " needs " + wanted.describe()};
  }
  const std::size_t at = w.size();
  w.resize(at + tensor->size());
  if (tensor->bytes.empty()) return {};
  std::memcpy(w.data() + at, tensor->bytes.data(), tensor->bytes.size());
  for (std::size_t i = at; i < w.size(); ++i)
    if (!std::isfinite(w[i]))
      return Error{location + " holds " + std::to_string(w[i]) + " at " +
                   indices_text(shape, i - at) + "; valid: finite numbers"};
  return {};
}

template <class T>
Result<Weights> read_parameters(const StoredModel& stored, const AnyModel& model) {
  std::vector<T> w;
  for (const auto& parameter : model.parameters())
    if (auto done = read_parameter(stored, model, parameter, w); !done)
      return std::move(done).error();
  return Weights{std::move(w)};
}

}  // namespace

Result<void> check_parameters(const AnyModel& model) {
  const auto parameters = model.parameters();
  if (auto valid = models::check(parameters); !valid) return valid;
  for (const auto& parameter : parameters)
    if (!safetensors::is_valid_tensor_name(parameter.name) ||
        parameter.name.starts_with(own_prefix))
      return Error{"parameter '" + parameter.name +
                   "': no tensor of a file can have this name; valid: UTF-8, not __metadata__, and "
                   "not beginning with " +
                   own_prefix};
  const double count = static_cast<double>(models::total_size(parameters));
  const double bytes = count * (model.element_type() == ElementType::float32 ? 4 : 8);
  if (bytes > memory_bytes())
    return Error{fmt::format(
        "{} has {:.0f} parameters, {:.1f} GB in {}; this machine has {:.1f} GB of memory",
        model.print(), count, bytes / 1e9, print(model.element_type()), memory_bytes() / 1e9)};
  return {};
}

ModelNotes notes_of(const AnyModel& model, const DataRequest& request, const AnyData& data) {
  ModelNotes notes{model.print(), model.element_type(), request};
  if (data.table() == nullptr) return notes;
  notes.shape = data.table()->select({});
  notes.train_hash = fingerprint(data);
  return notes;
}

Metadata to_metadata(const ModelNotes& notes) {
  Metadata metadata{{"producer", "starling " + version()},
                    {"model", notes.model},
                    {"dtype", print(notes.element_type)},
                    {"data", notes.data.data},
                    {"seed", std::to_string(notes.data.seed)}};
  if (notes.data.test) metadata["test"] = *notes.data.test;
  if (notes.data.split) metadata["split"] = std::to_string(*notes.data.split);
  if (notes.data.holdout) metadata["holdout"] = print_number(*notes.data.holdout);
  if (notes.data.scale) metadata["scale"] = print(*notes.data.scale);
  if (notes.shape) add_shape(metadata, *notes.shape);
  if (notes.train_hash) metadata["train_hash"] = std::to_string(*notes.train_hash);
  if (notes.kept.empty()) return metadata;
  metadata["kept"] = notes.kept;
  metadata["step"] = print_number(notes.step);
  return metadata;
}

std::vector<safetensors::View> scaling_tensors(const ModelNotes& notes) {
  if (!notes.shape || notes.shape->scaling.shift.empty()) return {};
  const models::Scaling& scaling = notes.shape->scaling;
  const std::vector<std::uint64_t> shape{scaling.shift.size()};
  return {safetensors::view<float>(shift_name, shape, scaling.shift),
          safetensors::view<float>(divisor_name, shape, scaling.divisor)};
}

std::vector<safetensors::View> to_tensors(const ModelNotes& notes, const ModelDescription& model,
                                          const Weights& w) {
  auto tensors = scaling_tensors(notes);
  std::size_t at = 0;
  for (const auto& parameter : model.parameters()) {
    const std::size_t size = parameter.size();
    std::visit(
        [&]<class T>(const std::vector<T>& values) {
          tensors.push_back(safetensors::view<T>(parameter.name, shape_of(parameter),
                                                 std::span{values}.subspan(at, size)));
        },
        w);
    at += size;
  }
  return tensors;
}

Result<void> save_model(const std::string& path, const ModelNotes& notes,
                        const ModelDescription& model, const Weights& w) {
  return safetensors::write(path, to_metadata(notes), to_tensors(notes, model, w));
}

Result<StoredModel> read_model(const std::string& path, Trust trust) {
  auto file = safetensors::read(path);
  if (!file) return std::move(file).error();
  if (trust == Trust::checked && !file->has_checksum)
    return Error{path + ": has no checksum ('crc32' in its metadata), so nobody can tell whether " +
                 "it is damaged; valid: a file that " + program_name() + " wrote, or --trust-file"};
  auto notes = notes_in(path, *file);
  if (!notes) return std::move(notes).error();
  StoredModel stored{.path = path, .notes = *std::move(notes), .file = *std::move(file)};
  // Files of versions in which linear models had no intercept by default hold no bias.
  if (stored.notes.model == "linear" && stored.file.find("bias") == nullptr)
    stored.notes.model = "linear:bias=0";
  return stored;
}

Result<ModelNotes> notes_in(const std::string& path, const safetensors::File& file) {
  MetadataReader reader{path, file.metadata};
  ModelNotes notes;
  notes.model = reader.text("model");
  notes.element_type = reader.type("dtype");
  notes.data.data = reader.text("data");
  notes.data.seed = reader.count("seed");
  if (reader.has("test")) notes.data.test = reader.text("test");
  if (reader.has("split")) notes.data.split = reader.count("split");
  if (reader.has("holdout")) notes.data.holdout = reader.number("holdout");
  notes.data.scale = reader.has("scale") ? reader.scale("scale") : models::Scale::none;
  if (reader.has("features")) notes.shape = read_shape(reader);
  if (reader.has("train_hash")) notes.train_hash = reader.count("train_hash");
  if (auto done = reader.finish(); !done) return std::move(done).error();
  if (notes.shape)
    if (auto scaling = read_scaling(path, file, *notes.shape); !scaling)
      return std::move(scaling).error();
  return notes;
}

Result<Weights> weights_in(const StoredModel& stored, const AnyModel& model) {
  return model.element_type() == ElementType::float32 ? read_parameters<float>(stored, model)
                                                      : read_parameters<double>(stored, model);
}

Result<std::shared_ptr<const AnyModel>> model_in(const Registry& registry,
                                                 const StoredModel& stored, const AnyData& data,
                                                 const std::string& source) {
  const ModelNotes& notes = stored.notes;
  const AnyData shape = notes.shape ? AnyData::of(*notes.shape) : data;
  auto model = make_model(registry, notes.model, shape, notes.element_type);
  if (!model) return std::move(model).error().within(stored.path);
  if (auto valid = check_parameters(**model); !valid)
    return std::move(valid).error().within(stored.path);
  if (auto accepted = accepts_test_data(**model, shape.table(), data); !accepted)
    return std::move(accepted).error().within(source);
  return model;
}

}  // namespace starling::program
