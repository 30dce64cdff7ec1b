/// Defines add_models() of built_in.hpp. Only built_in_float.cpp and built_in_double.cpp include
/// this header: the models take long to compile, so each element type has its own source file.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "starling/models/built_in/built_in_models.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/model_of.hpp"
#include "starling/tools/registry/net_file.hpp"

namespace starling::program {

inline constexpr std::string_view net_summary =
    "layers of your own, from a TOML file or as text: net:FILE | net:layers=LAYERS[,...]";

/// Adds a model that has static members `name` and `summary`.
template <class T, class Model>
void add_model(Registry& registry, std::type_identity<Model>) {
  registry.model<Model>();
}

/// Adds Net under each of its names, such as `lenet5`.
template <class T>
void add_model(Registry& registry, std::type_identity<models::Net<T>>) {
  for (const models::ModelEntry& entry : models::Net<T>::names()) {
    const bool is_net = entry.name == "net";
    registry.model<models::Net<T>>(std::string{entry.name},
                                   std::string{is_net ? net_summary : entry.summary}, make_net<T>);
  }
}

template <class T>
void add_models(Registry& registry) {
  [&]<class... Models>(std::type_identity<std::variant<Models...>>) {
    (add_model<T>(registry, std::type_identity<Models>{}), ...);
  }(std::type_identity<models::AnyModel<T>>{});
}

}  // namespace starling::program
