/// The built-in models, from which `--model` chooses. To add one, write its file, include it here
/// and name it in AnyModel.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/models/model_entry.hpp"
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

/// Returns the entries of a model type in the list of models: M::names() if it exists, else one
/// entry of M::name and M::summary.
template <class M>
[[nodiscard]] std::vector<ModelEntry> entries_of() {
  if constexpr (requires { M::names(); }) {
    return M::names();
  } else {
    return {{M::name, M::summary}};
  }
}

/// Returns the entries of all built-in models, in the order of AnyModel.
[[nodiscard]] std::vector<ModelEntry> model_entries();

/// Returns the model that `text` names, with parameters of the shapes that `data` needs. Refuses an
/// unknown name (and suggests the nearest valid one), a bad option, and data that the model cannot
/// learn from (with the reason).
template <class T>
[[nodiscard]] Result<AnyModel<T>> parse_model(std::string_view text, const Table& data);

/// Returns text that parse_model reads back to the same model over the same data.
template <class T>
[[nodiscard]] std::string print(const AnyModel<T>& model);

}  // namespace starling::models
