/// Internal: adds the built-in models of one element type. Each element type has a source file of
/// its own, because the models take long to compile.
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

template <class T, class Model>
void add_model(Registry& registry, std::type_identity<Model>) {
  registry.model<Model>();
}

template <class T>
void add_model(Registry& registry, std::type_identity<models::Net<T>>) {
  for (const models::ModelEntry& known : models::Net<T>::names()) {
    const bool is_net = known.name == "net";
    registry.model<models::Net<T>>(std::string{known.name},
                                   std::string{is_net ? net_summary : known.summary}, make_net<T>);
  }
}

template <class T>
void add_models(Registry& registry) {
  [&]<class... Models>(std::type_identity<std::variant<Models...>>) {
    (add_model<T>(registry, std::type_identity<Models>{}), ...);
  }(std::type_identity<models::AnyModel<T>>{});
}

}  // namespace starling::program
