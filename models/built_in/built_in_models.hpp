/// The built-in models: the closed set that `--model` chooses from. To add one, write its file and
/// name it once in AnyModel.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/model_name.hpp"
#include "starling/models/net/net.hpp"
#include "starling/models/table.hpp"
#include "starling/models/tabular/factorization.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "starling/models/tabular/perceptron.hpp"

namespace starling::models {

/// One of the built-in models; each satisfies Model, RowSparseModel and CheckedModel over Table.
template <class T>
using AnyModel = std::variant<Linear<T>, Logistic<T>, Softmax<T>, Svm<T>, Factorization<T>,
                              Perceptron<T>, Net<T>>;

/// Returns the names of a model: M::names() where it exists, else M::name alone.
template <class M>
[[nodiscard]] std::vector<ModelName> names_of() {
  if constexpr (requires { M::names(); }) {
    return M::names();
  } else {
    return {{M::name, M::summary}};
  }
}

/// Every built-in model, in the order of AnyModel.
[[nodiscard]] std::vector<ModelName> model_names();

/// Returns the model that `text` names, shaped for `data`. Errors: an unknown name (with the
/// nearest valid one), a bad option, and data that the model cannot learn from (with the reason).
template <class T>
[[nodiscard]] Result<AnyModel<T>> parse_model(std::string_view text, const Table& data);

/// Returns text that parse_model reads back to the same model over the same data.
template <class T>
[[nodiscard]] std::string print(const AnyModel<T>& model);

}  // namespace starling::models
