#include "starling/models/optimizer/optimizer.hpp"

#include <array>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/models/kernels/multiversioning.hpp"

namespace starling::models {
namespace {

using Size = std::size_t;

template <class T>
STARLING_INLINE void descend_loop(T lr, T l2, const T* g, T* w, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) w[i] -= lr * (g[i] + l2 * w[i]);
}

/// w -= lr (now g + momentum v): now is 0 for plain momentum with `ahead` 1, and 1 for Nesterov's
/// with `ahead` = momentum.
template <class T>
STARLING_INLINE void momentum_loop(T lr, T l2, T momentum, T now, T ahead, const T* g, T* w, T* v,
                                   Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const T slope = g[i] + l2 * w[i];
    v[i] = momentum * v[i] + slope;
    w[i] -= lr * (now * slope + ahead * v[i]);
  }
}

template <class T>
STARLING_INLINE void adagrad_loop(T lr, T l2, T epsilon, const T* g, T* w, T* s, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const T slope = g[i] + l2 * w[i];
    s[i] += slope * slope;
    w[i] -= lr * slope / (std::sqrt(s[i]) + epsilon);
  }
}

/// Adam's factors, in the form that the loop uses.
template <class T>
struct AdamFactors {
  T beta1, beta2, epsilon, l2;
  /// lr / (1 - beta1^t)
  T rate;
  /// 1 / sqrt(1 - beta2^t)
  T spread;
};

template <class T>
STARLING_INLINE void adam_loop(AdamFactors<T> by, const T* g, T* w, T* m, T* v, Size n) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const T slope = g[i] + by.l2 * w[i];
    m[i] = by.beta1 * m[i] + (1 - by.beta1) * slope;
    v[i] = by.beta2 * v[i] + (1 - by.beta2) * slope * slope;
    w[i] -= by.rate * m[i] / (std::sqrt(v[i]) * by.spread + by.epsilon);
  }
}

#define STARLING_UPDATES(T)                                                                    \
  STARLING_CLONES void descend(T lr, T l2, const T* g, T* w, Size n) {                         \
    descend_loop(lr, l2, g, w, n);                                                             \
  }                                                                                            \
  STARLING_CLONES void momentum_step(T lr, T l2, T momentum, T now, T ahead, const T* g, T* w, \
                                     T* v, Size n) {                                           \
    momentum_loop(lr, l2, momentum, now, ahead, g, w, v, n);                                   \
  }                                                                                            \
  STARLING_CLONES void adagrad_step(T lr, T l2, T epsilon, const T* g, T* w, T* s, Size n) {   \
    adagrad_loop(lr, l2, epsilon, g, w, s, n);                                                 \
  }                                                                                            \
  STARLING_CLONES void adam_step(AdamFactors<T> by, const T* g, T* w, T* m, T* v, Size n) {    \
    adam_loop(by, g, w, m, v, n);                                                              \
  }

STARLING_UPDATES(float)
STARLING_UPDATES(double)

/// The memory that an update reads and changes.
template <class T>
struct Update {
  std::span<T> w;
  std::span<const T> g;
  std::span<T> state;
  Size stride;
  const ApplyOptions& options;

  [[nodiscard]] T rate(double lr) const { return static_cast<T>(lr * options.rate_scale); }
  [[nodiscard]] T l2() const { return static_cast<T>(options.l2); }
};

template <class T>
void step(const Sgd& sgd, const Update<T>& by) {
  const auto [w, g, state, stride, options] = by;
  const T lr = by.rate(sgd.lr);
  const T momentum = static_cast<T>(sgd.momentum);
  if (sgd.momentum == 0) {
    descend(lr, by.l2(), g.data(), w.data(), w.size());
  } else {
    momentum_step(lr, by.l2(), momentum, sgd.nesterov ? T{1} : T{0}, sgd.nesterov ? momentum : T{1},
                  g.data(), w.data(), state.data(), w.size());
  }
}

template <class T>
void step(const Adagrad& adagrad, const Update<T>& by) {
  adagrad_step(by.rate(adagrad.lr), by.l2(), static_cast<T>(adagrad.epsilon), by.g.data(),
               by.w.data(), by.state.data(), by.w.size());
}

template <class T>
void step(const Adam& adam, const Update<T>& by) {
  STARLING_CHECK(by.options.t > 0);
  const auto t = static_cast<double>(by.options.t);
  const AdamFactors<T> factors{
      .beta1 = static_cast<T>(adam.beta1),
      .beta2 = static_cast<T>(adam.beta2),
      .epsilon = static_cast<T>(adam.epsilon),
      .l2 = by.l2(),
      .rate = static_cast<T>(adam.lr * by.options.rate_scale / (1 - std::pow(adam.beta1, t))),
      .spread = static_cast<T>(1 / std::sqrt(1 - std::pow(adam.beta2, t)))};
  adam_step(factors, by.g.data(), by.w.data(), by.state.data(), by.state.data() + by.stride,
            by.w.size());
}

constexpr double most_rate = 1e6;

/// Reads a factor in [0, 1).
double decay_rate(SpecReader& read, const char* key, double otherwise) {
  const double value = read.number(key, otherwise, 0, 1);
  if (value == 1) read.refuse(std::string{key} + "=1 must be below 1");
  return value;
}

Sgd read_sgd(SpecReader& read) {
  Sgd sgd;
  sgd.lr = read.number("lr", sgd.lr, 0, most_rate);
  sgd.momentum = decay_rate(read, "momentum", sgd.momentum);
  sgd.nesterov = read.flag("nesterov");
  if (sgd.nesterov && sgd.momentum == 0) read.refuse("nesterov needs momentum above 0");
  return sgd;
}

Adagrad read_adagrad(SpecReader& read) {
  Adagrad adagrad;
  adagrad.lr = read.number("lr", adagrad.lr, 0, most_rate);
  adagrad.epsilon = read.number("epsilon", adagrad.epsilon, 1e-30, 1);
  return adagrad;
}

Adam read_adam(SpecReader& read) {
  Adam adam;
  adam.lr = read.number("lr", adam.lr, 0, most_rate);
  adam.beta1 = decay_rate(read, "beta1", adam.beta1);
  adam.beta2 = decay_rate(read, "beta2", adam.beta2);
  adam.epsilon = read.number("epsilon", adam.epsilon, 1e-30, 1);
  return adam;
}

/// Returns ",key=value", or nothing where the value is the default.
std::string option(const char* key, double value, double by_default) {
  return value == by_default ? "" : std::string{","} + key + "=" + print_number(value);
}

std::string print_of(const Sgd& sgd) {
  return "sgd:lr=" + print_number(sgd.lr) + option("momentum", sgd.momentum, 0) +
         (sgd.nesterov ? ",nesterov" : "");
}
std::string print_of(const Adagrad& adagrad) {
  return "adagrad:lr=" + print_number(adagrad.lr) +
         option("epsilon", adagrad.epsilon, Adagrad{}.epsilon);
}
std::string print_of(const Adam& adam) {
  return "adam:lr=" + print_number(adam.lr) + option("beta1", adam.beta1, Adam{}.beta1) +
         option("beta2", adam.beta2, Adam{}.beta2) +
         option("epsilon", adam.epsilon, Adam{}.epsilon);
}

Size slots_of(const Sgd& sgd) { return sgd.momentum > 0 ? 1 : 0; }
Size slots_of(const Adagrad&) { return 1; }
Size slots_of(const Adam&) { return 2; }

}  // namespace

Result<Optimizer> parse_optimizer(std::string_view text) {
  const auto spec = Spec::parse(text);
  if (!spec) return Error{"optimizer: " + spec.error().message};
  SpecReader read{*spec};
  Optimizer optimizer;
  if (spec->name == "sgd") {
    optimizer = read_sgd(read);
  } else if (spec->name == "adagrad") {
    optimizer = read_adagrad(read);
  } else if (spec->name == "adam") {
    optimizer = read_adam(read);
  } else {
    const std::array<std::string, 3> names{"sgd", "adagrad", "adam"};
    return Error{"unknown optimizer '" + spec->name + "'; " + suggest(spec->name, names)};
  }
  if (auto done = read.finish(); !done) return std::move(done).error();
  return optimizer;
}

std::string print(const Optimizer& optimizer) {
  return std::visit([](const auto& any) { return print_of(any); }, optimizer);
}

std::size_t slots(const Optimizer& optimizer) {
  return std::visit([](const auto& any) { return slots_of(any); }, optimizer);
}

double learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& any) { return any.lr; }, optimizer);
}

template <class T>
void apply(const Optimizer& optimizer, std::span<T> w, std::span<const std::type_identity_t<T>> g,
           std::span<std::type_identity_t<T>> state, std::size_t slot_stride,
           const ApplyOptions& options) {
  const Size count = slots(optimizer);
  STARLING_CHECK(g.size() == w.size() && slot_stride >= w.size());
  STARLING_CHECK(count == 0 || state.size() >= (count - 1) * slot_stride + w.size());
  const Update<T> update{w, g, state, slot_stride, options};
  std::visit([&](const auto& any) { step(any, update); }, optimizer);
}

template void apply<float>(const Optimizer&, std::span<float>, std::span<const float>,
                           std::span<float>, std::size_t, const ApplyOptions&);
template void apply<double>(const Optimizer&, std::span<double>, std::span<const double>,
                            std::span<double>, std::size_t, const ApplyOptions&);

}  // namespace starling::models
