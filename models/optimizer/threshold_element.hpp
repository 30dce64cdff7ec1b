/// Internal: threshold compression of one element, on the host and on devices.
#pragma once

#include <cmath>
#include <cstdint>

#include "starling/models/kernels/host_device.hpp"
#include "starling/models/optimizer/gradient_compression.hpp"

namespace starling::models {

/// The bit of an index that marks its element as negative.
inline constexpr std::uint32_t sign_bit = std::uint32_t{1} << 31U;

STARLING_HOST_DEVICE inline bool is_sent(const Threshold& how, float residual) {
  return fabsf(residual) > how.threshold;
}

STARLING_HOST_DEVICE inline std::uint32_t sent_index(const Threshold& how, std::uint32_t i,
                                                     float residual) {
  return how.form == Threshold::Form::signs && residual < 0 ? i | sign_bit : i;
}

/// Returns the value that the receiver adds for a sent residual.
STARLING_HOST_DEVICE inline float sent_value(const Threshold& how, float residual) {
  if (how.form == Threshold::Form::values) return residual;
  return residual < 0 ? -how.threshold : how.threshold;
}

/// Returns the part of a sent residual that stays. In the form `values` that is 0, not a
/// difference: infinity less infinity would be NaN.
STARLING_HOST_DEVICE inline float left_value(const Threshold& how, float residual) {
  return how.form == Threshold::Form::values ? 0 : residual - sent_value(how, residual);
}

}  // namespace starling::models
