#pragma once

#include <cmath>

#include "starling/models/optimizer/optimizers/update.hpp"

namespace starling::models {

/// AdaGrad (Duchi, Hazan, Singer, JMLR 2011, with a diagonal matrix):
///
///     s += g^2;  w -= lr g / (sqrt(s) + epsilon)
///
/// Slots: s.
struct Adagrad {
  static constexpr std::string_view name = "adagrad";
  static constexpr std::string_view example = "adagrad:lr=0.01";

  double lr = 0.01;
  double epsilon = 1e-10;

  static Adagrad parse(SpecReader& reader) {
    Adagrad adagrad;
    adagrad.lr = read_rate(reader, adagrad.lr);
    adagrad.epsilon = read_epsilon(reader, adagrad.epsilon);
    return adagrad;
  }
  [[nodiscard]] std::string options() const {
    return "lr=" + print_number(lr) + print_option("epsilon", epsilon, Adagrad{}.epsilon);
  }

  [[nodiscard]] std::size_t slot_count() const { return 1; }

  template <class T>
  struct Update {
    T lr, epsilon;

    STARLING_INLINE STARLING_HOST_DEVICE void operator()(T g, T& w, const Slots<T>& slots) const {
      T& s = slots[0];
      s += g * g;
      w -= lr * g / (std::sqrt(s) + epsilon);
    }
  };

  template <class T>
  [[nodiscard]] Update<T> make_update(const ApplyOptions& options) const {
    return {.lr = static_cast<T>(lr * options.rate_scale), .epsilon = static_cast<T>(epsilon)};
  }

  bool operator==(const Adagrad&) const = default;
};

}  // namespace starling::models
