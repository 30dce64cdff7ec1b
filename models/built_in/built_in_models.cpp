#include "starling/models/built_in/built_in_models.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling::models {
namespace {

/// Functions over all model types of a variant.
template <class Any>
struct ModelList;

template <class... Models>
struct ModelList<std::variant<Models...>> {
  static_assert((RowSparseModel<Models, Table> && ...));
  static_assert((CheckedModel<Models, Table> && ...));
  using Any = std::variant<Models...>;

  static std::vector<ModelEntry> entries() {
    std::vector<ModelEntry> list;
    (std::ranges::copy(entries_of<Models>(), std::back_inserter(list)), ...);
    return list;
  }

  /// Returns the model that `spec` names, or an error; nullopt if no model has this name.
  static std::optional<Result<Any>> parse(const Spec& spec, const Table& data) {
    std::optional<Result<Any>> found;
    const auto parse_if_named = [&]<class Model>(std::type_identity<Model>) {
      for (const ModelEntry& known : entries_of<Model>())
        if (spec.name == known.name) found = parse_as<Model>(spec, data);
    };
    (parse_if_named(std::type_identity<Models>{}), ...);
    return found;
  }

 private:
  template <class Model>
  static Result<Any> parse_as(const Spec& spec, const Table& data) {
    auto model = Model::parse(spec, data);
    if (!model) return std::move(model).error();
    return Any{std::move(model).value()};
  }
};

}  // namespace

std::vector<ModelEntry> model_entries() { return ModelList<AnyModel<float>>::entries(); }

template <class T>
Result<AnyModel<T>> parse_model(std::string_view text, const Table& data) {
  const auto spec = Spec::parse(text);
  if (!spec) return Error{"model: " + spec.error().message};
  if (auto found = ModelList<AnyModel<T>>::parse(*spec, data)) return *std::move(found);
  std::vector<std::string> names;
  for (const ModelEntry& model : model_entries()) names.emplace_back(model.name);
  return Error{"unknown model '" + spec->name + "'; " + suggest(spec->name, names)};
}

template <class T>
std::string print(const AnyModel<T>& model) {
  return std::visit([](const auto& alternative) { return alternative.print(); }, model);
}

template Result<AnyModel<float>> parse_model<float>(std::string_view, const Table&);
template Result<AnyModel<double>> parse_model<double>(std::string_view, const Table&);
template std::string print<float>(const AnyModel<float>&);
template std::string print<double>(const AnyModel<double>&);

}  // namespace starling::models
