#include "starling/models/tabular/factorization.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/tabular/batches.hpp"

namespace starling::models {
namespace {

/// Ids are stored as floats, which count exactly up to 2^24.
constexpr std::size_t ids_max = std::size_t{1} << 24U;

Result<void> check_shape(const Table& data) {
  if (data.is_sparse())
    return Error{"mf needs dense rows (user, item), but the data has sparse ones"};
  if (data.features() != 2)
    return Error{"mf needs 2 features (user, item), but the data has " +
                 std::to_string(data.features())};
  if (data.classes() != 0)
    return Error{"mf needs ratings as real targets, but the data has " +
                 describe_labels(data.classes())};
  return {};
}

/// The option of mf that says how many ids a column may have.
constexpr const char* option_of(std::size_t column) { return column == 0 ? "users" : "items"; }

Error id_error(float id, std::size_t row, std::size_t column, std::size_t bound) {
  const std::string where = std::string{"mf: the "} + (column == 0 ? "user" : "item") +
                            " id in row " + std::to_string(row + 1);
  const std::string valid = std::to_string(bound - 1);
  if (!(id >= 0 && id < static_cast<float>(ids_max) && id == std::floor(id)))
    return Error{where + " is not a whole number from 0 to " + valid};
  return Error{where + " is " + print_number(static_cast<double>(id)) +
               ", but the model has ids from 0 to " + valid + "; valid: mf:" + option_of(column) +
               "=N with N above the largest id of all data"};
}

/// Returns one more than the largest id of a column, 0 if there are no rows. A value that is not an
/// id below `bound` is an Error.
Result<std::size_t> count_ids(const Table& data, std::size_t column, std::size_t bound) {
  if (data.is_mapped())
    return Error{
        "mf: ids cannot stay in a mapped file, where they may change; valid: data without "
        "mapped=yes"};
  float largest = -1;
  for (std::size_t row = 0; row < data.size(); ++row) {
    const float id = data.dense_row(row)[column];
    if (!(id >= 0 && id < static_cast<float>(bound) && id == std::floor(id)))
      return id_error(id, row, column, bound);
    largest = std::max(largest, id);
  }
  return static_cast<std::size_t>(largest + 1);
}

/// Returns the id in a column. Checks it, because an id of `bound` or more would index beyond the
/// parameters.
std::size_t id_of(const Table& data, std::size_t row, std::size_t column, std::size_t bound) {
  const auto id = static_cast<std::size_t>(data.dense_row(row)[column]);
  STARLING_CHECK(id < bound);
  return id;
}

double mean_label(const Table& data) {
  double sum = 0;
  for (std::size_t row = 0; row < data.size(); ++row) sum += static_cast<double>(data.label(row));
  return data.size() == 0 ? 0 : sum / static_cast<double>(data.size());
}

}  // namespace

template <class T>
Result<Factorization<T>> Factorization<T>::parse(const Spec& spec, const Table& data) {
  SpecReader reader{spec};
  Factorization model;
  model.rank_ = reader.count("rank", 16, 1, 65536);
  model.users_ = reader.count("users", 0, 1, ids_max);
  model.items_ = reader.count("items", 0, 1, ids_max);
  if (auto done = reader.finish(); !done) return std::move(done).error();
  if (auto fit = check_shape(data); !fit) return std::move(fit).error();
  for (const std::size_t column : {std::size_t{0}, std::size_t{1}}) {
    std::size_t& bound = column == 0 ? model.users_ : model.items_;
    const auto count = count_ids(data, column, bound == 0 ? ids_max : bound);
    if (!count) return count.error();
    if (bound == 0) bound = *count;
  }
  model.mean_ = mean_label(data);
  return model;
}

template <class T>
std::string Factorization<T>::print() const {
  return "mf:rank=" + std::to_string(rank_) + ",users=" + std::to_string(users_) +
         ",items=" + std::to_string(items_);
}

template <class T>
std::vector<Parameter> Factorization<T>::parameters() const {
  return {{.name = "user", .shape = {users_, rank_}, .row_sparse = true},
          {.name = "item", .shape = {items_, rank_}, .row_sparse = true},
          {.name = "user_bias", .shape = {users_}, .row_sparse = true},
          {.name = "item_bias", .shape = {items_}, .row_sparse = true},
          {.name = "mean", .shape = {}, .decay = false}};
}

template <class T>
void Factorization<T>::initialise(std::span<T> w, Random& random) const {
  std::ranges::fill(w, T{0});
  for (T& factor : w.first((users_ + items_) * rank_))
    factor = static_cast<T>(0.1 * random.normal());
  w.back() = static_cast<T>(mean_);
}

template <class T>
Result<void> Factorization<T>::accepts(const Table& data) const {
  if (auto fit = check_shape(data); !fit) return fit;
  if (auto users = count_ids(data, 0, users_); !users) return users.error();
  if (auto items = count_ids(data, 1, items_); !items) return items.error();
  return {};
}

template <class T>
template <class U>
typename Factorization<T>::template RowParameters<U> Factorization<T>::row_parameters(
    std::span<U> w, const Table& data, std::size_t row) const {
  const std::size_t user = id_of(data, row, 0, users_);
  const std::size_t item = id_of(data, row, 1, items_);
  const std::span<U> biases = w.subspan((users_ + items_) * rank_);
  return {w.subspan(user * rank_, rank_), w.subspan((users_ + item) * rank_, rank_), biases[user],
          biases[users_ + item], biases[users_ + items_]};
}

template <class T>
T Factorization<T>::predict_rating(const RowParameters<const T>& row_w) const {
  return row_w.mean + row_w.user_bias + row_w.item_bias + dot<T, T>(row_w.user, row_w.item);
}

template <class T>
double Factorization<T>::gradient(std::span<const T> w, const Table& data, Batch batch,
                                  std::span<T> g, ComputeContext&) const {
  if (batch.empty()) return 0;
  const T weight = T{1} / static_cast<T>(batch.size());
  double squares = 0;
  for (const std::uint32_t row : batch) {
    const RowParameters<const T> row_w = row_parameters(w, data, row);
    const RowParameters<T> row_g = row_parameters(g, data, row);
    const T error = predict_rating(row_w) - static_cast<T>(data.label(row));
    const T derivative = weight * error;
    squares += static_cast<double>(error) * static_cast<double>(error);
    axpy<T, T>(derivative, row_w.item, row_g.user);
    axpy<T, T>(derivative, row_w.user, row_g.item);
    row_g.user_bias += derivative;
    row_g.item_bias += derivative;
    row_g.mean += derivative;
  }
  return 0.5 * squared_error_factor(data) * squares / static_cast<double>(batch.size());
}

template <class T>
Metrics Factorization<T>::evaluate(std::span<const T> w, const Table& data, Batch batch,
                                   ComputeContext&) const {
  double squares = 0;
  for (const std::uint32_t row : batch) {
    const double error = static_cast<double>(predict_rating(row_parameters(w, data, row))) -
                         static_cast<double>(data.label(row));
    squares += error * error;
  }
  return mean_metrics<SquaredLoss>({0.5 * squares, squares}, batch.size(), data);
}

template <class T>
std::vector<TouchedRows> Factorization<T>::touched(const Table& data, Batch batch) const {
  const auto ids = [&](std::size_t column) {
    std::vector<std::uint32_t> found;
    found.reserve(batch.size());
    for (const std::uint32_t row : batch)
      found.push_back(static_cast<std::uint32_t>(data.dense_row(row)[column]));
    return sort_unique(std::move(found));
  };
  const auto users = ids(0);
  const auto items = ids(1);
  return {{0, users}, {1, items}, {2, users}, {3, items}};
}

template <class T>
void Factorization<T>::predict(std::span<const T> w, const Table& data, Batch batch,
                               ComputeContext&, std::span<float> out) const {
  STARLING_CHECK(out.size() == batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i)
    out[i] = static_cast<float>(predict_rating(row_parameters(w, data, batch[i])));
}

template class Factorization<float>;
template class Factorization<double>;

}  // namespace starling::models
