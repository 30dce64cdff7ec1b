#include "starling/app/built_in.hpp"

#include <algorithm>
#include <optional>

#include "starling/base/text.hpp"

namespace starling::app {
namespace {

std::vector<std::string> names_of(const std::vector<ModelEntry>& models) {
  std::vector<std::string> names;
  for (const ModelEntry& model : models)
    if (std::ranges::find(names, model.name) == names.end()) names.push_back(model.name);
  return names;
}

Error unknown(const Contents& contents, const std::string& name) {
  return Error{"unknown model '" + name + "'; " + suggest(name, names_of(contents.models()))};
}

}  // namespace

Contents with_built_in(Contents own) {
  add_float_models(own);
  add_double_models(own);
  return own;
}

Result<std::shared_ptr<const AnyModel>> make_model(const Contents& contents,
                                                   const std::string& text, const AnyData& data,
                                                   std::optional<ElementType> type) {
  const auto spec = Spec::parse(text);
  if (!spec) return spec.error();
  const ModelEntry* named = nullptr;
  const ModelEntry* typed = nullptr;
  for (const ModelEntry& entry : contents.models()) {
    if (entry.name != spec->name) continue;
    if (named == nullptr) named = &entry;
    if (type && entry.element_type != *type) continue;
    if (typed == nullptr) typed = &entry;
    if (entry.takes(data)) return entry.make(*spec, data);
  }
  if (named == nullptr) return unknown(contents, spec->name);
  if (typed == nullptr)
    return Error{"model " + spec->name + " does not compute in " + print(*type) +
                 "; valid: " + print(named->element_type)};
  return Error{"model " + spec->name + " learns from data of another type"};
}

}  // namespace starling::app
