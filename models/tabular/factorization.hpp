/// Matrix factorisation, which predicts ratings. Immutable; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/models/model.hpp"
#include "starling/models/table.hpp"

namespace starling::models {

/// Predicts the rating of item i by user u as mu + b_u + c_i + p_u . q_i (Koren, Bell, Volinsky,
/// "Matrix Factorization Techniques for Recommender Systems", Computer 2009, eq. 4). The loss is
/// (prediction - rating)^2 / 2. The data must be dense, with two features, the user id and the item
/// id (whole numbers from 0), and the rating as a real label.
///
/// Parameters: "user" [users x rank], "item" [items x rank], "user_bias" [users], "item_bias"
/// [items], all row-sparse, and the scalar "mean", without weight decay. Factors are initialised
/// normal with standard deviation 0.1, biases with 0, the mean with the data's mean rating.
template <class T>
class Factorization {
 public:
  using Scalar = T;
  static constexpr std::string_view name = "mf";
  static constexpr std::string_view summary =
      "matrix factorisation for (user, item) -> rating: mf[:rank=16,users=U,items=I]";

  /// Reads `mf[:rank=R,users=U,items=I]`. By default the number of users is one more than the
  /// largest user id in `data`, and likewise for items; set both if the test data may hold larger
  /// ids.
  static Result<Factorization> parse(const Spec& spec, const Table& data);
  [[nodiscard]] std::string print() const;

  [[nodiscard]] std::vector<Parameter> parameters() const;
  void initialise(std::span<T> w, Random& random) const;
  /// Returns an Error for data of another shape, or with an id that has no row in the parameters.
  [[nodiscard]] Result<void> accepts(const Table& data) const;

  double gradient(std::span<const T> w, const Table& data, Batch batch, std::span<T> g,
                  ComputeContext& context) const;
  /// Returns "loss" and "mse".
  [[nodiscard]] Metrics evaluate(std::span<const T> w, const Table& data, Batch batch,
                                 ComputeContext& context) const;
  [[nodiscard]] std::vector<TouchedRows> touched(const Table& data, Batch batch) const;

  /// Writes each row's predicted rating to `out`.
  void predict(std::span<const T> w, const Table& data, Batch batch, ComputeContext& context,
               std::span<float> out) const;

  [[nodiscard]] std::size_t users() const { return users_; }
  [[nodiscard]] std::size_t items() const { return items_; }
  [[nodiscard]] std::size_t rank() const { return rank_; }

 private:
  /// The parameters that one row of the data uses, or their gradients.
  template <class U>
  struct RowParameters {
    std::span<U> user;
    std::span<U> item;
    U& user_bias;
    U& item_bias;
    U& mean;
  };
  Factorization() = default;
  template <class U>
  RowParameters<U> row_parameters(std::span<U> w, const Table& data, std::size_t row) const;
  [[nodiscard]] T predict_rating(const RowParameters<const T>& row_w) const;

  std::size_t rank_ = 16;
  std::size_t users_ = 0;
  std::size_t items_ = 0;
  double mean_ = 0;
};

}  // namespace starling::models
