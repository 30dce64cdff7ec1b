/// Internal: the built-in models of one element type. Instantiated in one file for each type, for
/// it takes long to compile.
#pragma once

#include <type_traits>
#include <variant>

#include "starling/app/built_in.hpp"
#include "starling/models/list.hpp"

namespace starling::app {

template <class T>
void add_models(Contents& contents) {
  [&]<class... Models>(std::type_identity<std::variant<Models...>>) {
    (contents.model<Models>(), ...);
  }(std::type_identity<models::AnyModel<T>>{});
}

}  // namespace starling::app
