#pragma once

#include <cmath>

#include "starling/base/check.hpp"
#include "starling/models/optimizer/optimizers/update.hpp"

namespace starling::models {

/// Adam (Kingma, Ba, ICLR 2015, algorithm 1):
///
///     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// Slots: m, v.
struct Adam {
  static constexpr std::string_view name = "adam";
  static constexpr std::string_view example = "adam:lr=0.001";

  double lr = 0.001;
  /// In [0, 1).
  double beta1 = 0.9;
  /// In [0, 1).
  double beta2 = 0.999;
  double epsilon = 1e-8;

  static Adam parse(SpecReader& reader) {
    Adam adam;
    adam.lr = read_rate(reader, adam.lr);
    adam.beta1 = read_decay(reader, "beta1", adam.beta1);
    adam.beta2 = read_decay(reader, "beta2", adam.beta2);
    adam.epsilon = read_epsilon(reader, adam.epsilon);
    return adam;
  }
  [[nodiscard]] std::string options() const {
    return "lr=" + print_number(lr) + print_option("beta1", beta1, Adam{}.beta1) +
           print_option("beta2", beta2, Adam{}.beta2) +
           print_option("epsilon", epsilon, Adam{}.epsilon);
  }

  [[nodiscard]] std::size_t slot_count() const { return 2; }

  template <class T>
  struct Update {
    T beta1, beta2, epsilon;
    /// lr / (1 - beta1^t)
    T rate;
    /// 1 / sqrt(1 - beta2^t)
    T v_correction;

    STARLING_INLINE STARLING_HOST_DEVICE void operator()(T g, T& w, const Slots<T>& slots) const {
      T& m = slots[0];
      T& v = slots[1];
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      w -= rate * m / (std::sqrt(v) * v_correction + epsilon);
    }
  };

  /// Requires: options.t > 0.
  template <class T>
  [[nodiscard]] Update<T> make_update(const ApplyOptions& options) const {
    STARLING_CHECK(options.t > 0);
    const auto t = static_cast<double>(options.t);
    // Computes the corrections from the betas as T, because m and v are computed with these.
    const auto correction = [t](double beta) {
      return 1 - std::pow(static_cast<double>(static_cast<T>(beta)), t);
    };
    return {.beta1 = static_cast<T>(beta1),
            .beta2 = static_cast<T>(beta2),
            .epsilon = static_cast<T>(epsilon),
            .rate = static_cast<T>(lr * options.rate_scale / correction(beta1)),
            .v_correction = static_cast<T>(1 / std::sqrt(correction(beta2)))};
  }

  bool operator==(const Adam&) const = default;
};

}  // namespace starling::models
