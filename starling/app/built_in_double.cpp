#include "starling/app/built_in.hpp"
#include "starling/models/list.hpp"

namespace starling::app {
namespace {

template <class... Models>
void add_each(Contents& contents, std::type_identity<std::variant<Models...>>) {
  (contents.model<Models>(), ...);
}

}  // namespace

void add_double_models(Contents& contents) {
  add_each(contents, std::type_identity<models::AnyModel<double>>{});
}

}  // namespace starling::app
