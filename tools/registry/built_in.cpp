#include "starling/tools/registry/built_in.hpp"

#include <algorithm>
#include <optional>

#include "starling/base/text.hpp"
#include "starling/tools/registry/safetensors_data.hpp"

namespace starling::program {
namespace {

/// Returns the names of the models for which `wanted` is true, each name once.
std::vector<std::string> names_of(const Registry& registry, const auto& wanted) {
  std::vector<std::string> names;
  for (const ModelEntry& model : registry.models())
    if (wanted(model) && std::ranges::find(names, model.name) == names.end())
      names.push_back(model.name);
  return names;
}

Error unknown_model(const Registry& registry, const std::string& name) {
  const auto any = [](const ModelEntry&) { return true; };
  return Error{"unknown model '" + name + "'; " + suggest(name, names_of(registry, any))};
}

}  // namespace

std::vector<std::string> models_for(const Registry& registry, const AnyData& data) {
  return names_of(registry, [&](const ModelEntry& model) { return model.accepts(data); });
}

Registry with_built_in(Registry registry) {
  Registry built_in;
  add_models<float>(built_in);
  add_models<double>(built_in);
  registry.add_models_of(built_in);
  registry.data(safetensors_source, safetensors_summary,
                [](SpecReader& options, std::uint64_t) { return load_safetensors(options); });
  return registry;
}

Result<std::shared_ptr<const AnyModel>> make_model(const Registry& registry,
                                                   const std::string& text, const AnyData& data,
                                                   std::optional<ElementType> type) {
  const auto spec = Spec::parse(text);
  if (!spec) return spec.error();
  const ModelEntry* with_name = nullptr;
  const ModelEntry* with_name_and_type = nullptr;
  for (const ModelEntry& entry : registry.models()) {
    if (entry.name != spec->name) continue;
    if (with_name == nullptr) with_name = &entry;
    if (type && entry.element_type != *type) continue;
    if (with_name_and_type == nullptr) with_name_and_type = &entry;
    if (entry.accepts(data)) return entry.make(*spec, data);
  }
  if (with_name == nullptr) return unknown_model(registry, spec->name);
  if (with_name_and_type == nullptr)
    return Error{"model " + spec->name + " does not compute in " + print(*type) +
                 "; valid: " + print(with_name->element_type)};
  return Error{"model " + spec->name + " learns from data of another type; " +
               valid_names(models_for(registry, data))};
}

Result<void> accepts_test_data(const AnyModel& model, const models::Table* shape,
                               const AnyData& data) {
  if (auto accepted = model.accepts(data); !accepted) return accepted;
  const models::Table* table = data.table();
  if (shape == nullptr || table == nullptr) return {};
  if (table->is_sparse() != shape->is_sparse())
    return Error{std::string{"has "} + (table->is_sparse() ? "sparse" : "dense") +
                 " rows, but the training data has " + (shape->is_sparse() ? "sparse" : "dense") +
                 " ones"};
  // A sparse table may lack the last features, because its rows leave out zeros.
  const bool fits = shape->is_sparse() ? table->features() <= shape->features()
                                       : table->features() == shape->features();
  if (fits) return {};
  return Error{"has " + print_count(table->features(), "feature") + ", but the training data has " +
               std::to_string(shape->features())};
}

}  // namespace starling::program
