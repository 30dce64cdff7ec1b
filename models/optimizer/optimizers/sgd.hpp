#pragma once

#include "starling/models/optimizer/optimizers/update.hpp"

namespace starling::models {

/// Gradient descent, with or without momentum (Polyak 1964; Sutskever et al., ICML 2013, in the
/// form in which the velocity v does not include the rate):
///
///     momentum 0:  w -= lr g
///     else:        v = momentum v + g;  w -= lr v
///     nesterov:    v = momentum v + g;  w -= lr (g + momentum v)
///
/// Slots: v, if momentum > 0.
struct Sgd {
  static constexpr std::string_view name = "sgd";
  static constexpr std::string_view example = "sgd:lr=0.1[,momentum=0.9,nesterov]";

  double lr = 0.1;
  /// In [0, 1).
  double momentum = 0;
  bool nesterov = false;

  static Sgd parse(SpecReader& reader) {
    Sgd sgd;
    sgd.lr = read_rate(reader, sgd.lr);
    sgd.momentum = read_decay(reader, "momentum", sgd.momentum);
    sgd.nesterov = reader.flag("nesterov");
    if (sgd.nesterov && sgd.momentum == 0) reader.refuse("nesterov needs momentum above 0");
    return sgd;
  }
  [[nodiscard]] std::string options() const {
    return "lr=" + print_number(lr) + print_option("momentum", momentum, 0) +
           (nesterov ? ",nesterov" : "");
  }

  [[nodiscard]] std::size_t slot_count() const { return momentum > 0 ? 1 : 0; }

  /// With momentum, w -= lr (g_factor g + v_factor v). The factors are 0 and 1 for plain momentum,
  /// 1 and `momentum` for Nesterov's.
  template <class T>
  struct Update {
    T lr, momentum, g_factor, v_factor;

    STARLING_INLINE STARLING_HOST_DEVICE void operator()(T g, T& w, const Slots<T>& slots) const {
      if (momentum == 0) {
        w -= lr * g;
      } else {
        T& v = slots[0];
        v = momentum * v + g;
        w -= lr * (g_factor * g + v_factor * v);
      }
    }
  };

  template <class T>
  [[nodiscard]] Update<T> make_update(const ApplyOptions& options) const {
    return {.lr = static_cast<T>(lr * options.rate_scale),
            .momentum = static_cast<T>(momentum),
            .g_factor = nesterov ? T{1} : T{0},
            .v_factor = nesterov ? static_cast<T>(momentum) : T{1}};
  }

  bool operator==(const Sgd&) const = default;
};

}  // namespace starling::models
