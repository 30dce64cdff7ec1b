/// Internal: one optimiser step of one number, clipping and weight decay included, as
/// models/optimizer.hpp and models/clip.hpp define them.
#pragma once

#include <cmath>

#include "starling/models/cuda/kernels/host_device.hpp"
#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models::cuda {

/// The part of an update that stays the same from step to step.
struct UpdateRule {
  enum class Kind { sgd, momentum, adagrad, adam };
  Kind kind = Kind::sgd;
  float momentum = 0;
  /// w -= lr (now g + ahead v), as in Sgd.
  float now = 1;
  float ahead = 0;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
};

/// The part of an update that changes from step to step.
struct UpdateRates {
  float lr = 0;
  float l2 = 0;
  /// Adam's 1 / sqrt(1 - beta2^t); lr holds 1 / (1 - beta1^t).
  float spread = 1;
  /// The factor of changes of parameters that are not trained.
  float share = 1;
};

inline UpdateRule rule_of(const Optimizer& optimizer) {
  UpdateRule rule;
  if (const auto* sgd = std::get_if<Sgd>(&optimizer)) {
    rule.momentum = static_cast<float>(sgd->momentum);
    if (sgd->momentum > 0) rule.kind = UpdateRule::Kind::momentum;
    rule.now = sgd->nesterov || sgd->momentum == 0 ? 1 : 0;
    rule.ahead = sgd->nesterov ? rule.momentum : 1;
  } else if (const auto* adagrad = std::get_if<Adagrad>(&optimizer)) {
    rule.kind = UpdateRule::Kind::adagrad;
    rule.epsilon = static_cast<float>(adagrad->epsilon);
  } else {
    const auto& adam = std::get<Adam>(optimizer);
    rule.kind = UpdateRule::Kind::adam;
    rule.beta1 = static_cast<float>(adam.beta1);
    rule.beta2 = static_cast<float>(adam.beta2);
    rule.epsilon = static_cast<float>(adam.epsilon);
  }
  return rule;
}

/// Requires: options.t > 0 for Adam.
inline UpdateRates rates_of(const Optimizer& optimizer, const ApplyOptions& options) {
  UpdateRates rates;
  double lr = learning_rate(optimizer) * options.rate_scale;
  if (const auto* adam = std::get_if<Adam>(&optimizer)) {
    const auto t = static_cast<double>(options.t);
    lr /= 1 - std::pow(adam->beta1, t);
    rates.spread = static_cast<float>(1 / std::sqrt(1 - std::pow(adam->beta2, t)));
  }
  rates.lr = static_cast<float>(lr);
  rates.l2 = static_cast<float>(options.l2);
  return rates;
}

/// Clipping: a gradient is multiplied by `factor`, then kept within [-limit, limit].
struct Clipping {
  float factor = 1;
  float limit = INFINITY;
};

/// Returns the factor that clips a gradient whose squares sum to `squares` to the norm `limit`.
STARLING_HOST_DEVICE inline float norm_factor(double squares, double limit) {
  const double norm = sqrt(squares);
  return norm > limit && norm < INFINITY ? static_cast<float>(limit / norm) : 1.0F;
}

STARLING_HOST_DEVICE inline float clipped(float g, const Clipping& clip) {
  const float scaled = clip.factor * g;
  if (scaled > clip.limit) return clip.limit;
  return scaled < -clip.limit ? -clip.limit : scaled;
}

/// Moves w by the slope g, with the state s and t of up to two slots (t for Adam only).
STARLING_HOST_DEVICE inline void update(const UpdateRule& rule, const UpdateRates& rates, float g,
                                        float& w, float* s, float* t) {
  switch (rule.kind) {
    case UpdateRule::Kind::sgd:
      w -= rates.lr * g;
      return;
    case UpdateRule::Kind::momentum:
      *s = rule.momentum * *s + g;
      w -= rates.lr * (rule.now * g + rule.ahead * *s);
      return;
    case UpdateRule::Kind::adagrad:
      *s += g * g;
      w -= rates.lr * g / (sqrtf(*s) + rule.epsilon);
      return;
    case UpdateRule::Kind::adam:
      *s = rule.beta1 * *s + (1 - rule.beta1) * g;
      *t = rule.beta2 * *t + (1 - rule.beta2) * g * g;
      w -= rates.lr * *s / (sqrtf(*t) * rates.spread + rule.epsilon);
      return;
  }
}

/// A stretch of one parameter.
struct Stretch {
  std::uint32_t size = 0;
  std::uint64_t start = 0;
  bool decays = true;
  bool trained = true;
};

/// Updates one number of a stretch. Slots are `total` numbers apart.
struct Update {
  UpdateRule rule;
  const UpdateRates* rates;
  const float* g;
  float* w;
  float* state;
  std::uint64_t total;

  STARLING_HOST_DEVICE void operator()(const Stretch& stretch, std::uint64_t i,
                                       const Clipping& clip) const {
    if (!stretch.trained) {
      w[i] += rates->share * g[i];
      return;
    }
    const float slope = clipped(g[i], clip);
    const float decayed = stretch.decays ? slope + rates->l2 * w[i] : slope;
    update(rule, *rates, decayed, w[i], state + i, state + total + i);
  }
};

}  // namespace starling::models::cuda
