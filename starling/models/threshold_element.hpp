/// Internal: what threshold compression does to one element, on the host and on devices.
#pragma once

#include <cmath>
#include <cstdint>

#include "starling/models/gradient_compression.hpp"
#include "starling/models/host_device.hpp"

namespace starling::models {

/// Says that the element of an index is negative.
inline constexpr std::uint32_t sign_bit = std::uint32_t{1} << 31U;

STARLING_HOST_DEVICE inline bool is_sent(const Threshold& how, float residual) {
  return fabsf(residual) > how.threshold;
}

STARLING_HOST_DEVICE inline std::uint32_t sent_index(const Threshold& how, std::uint32_t i,
                                                     float residual) {
  return how.form == Threshold::Form::signs && residual < 0 ? i | sign_bit : i;
}

/// What stands for the residual on the other side.
STARLING_HOST_DEVICE inline float sent_value(const Threshold& how, float residual) {
  if (how.form == Threshold::Form::values) return residual;
  return residual < 0 ? -how.threshold : how.threshold;
}

/// What stays of the residual that is sent. Nothing where it goes itself: infinity less infinity
/// would be no number.
STARLING_HOST_DEVICE inline float left_value(const Threshold& how, float residual) {
  return how.form == Threshold::Form::values ? 0 : residual - sent_value(how, residual);
}

}  // namespace starling::models
