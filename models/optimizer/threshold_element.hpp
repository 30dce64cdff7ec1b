/// Internal to threshold compression: the arithmetic for one element, on the host and on devices.
#pragma once

#include <cmath>
#include <cstdint>

#include "starling/models/kernels/host_device.hpp"
#include "starling/models/optimizer/compressions/threshold.hpp"

namespace starling::models {

/// The bit of an index that marks its element as negative.
inline constexpr std::uint32_t sign_bit = std::uint32_t{1} << 31U;

/// Returns true if an element with this residual is sent.
STARLING_HOST_DEVICE inline bool is_sent(const Threshold& options, float residual) {
  return fabsf(residual) > options.threshold;
}

/// Returns index `i` as it is sent: in the form `signs`, sign_bit is set if `residual` is negative.
STARLING_HOST_DEVICE inline std::uint32_t sent_index(const Threshold& options, std::uint32_t i,
                                                     float residual) {
  return options.form == Threshold::Form::signs && residual < 0 ? i | sign_bit : i;
}

/// Returns the value that the receiver adds for a sent residual.
STARLING_HOST_DEVICE inline float sent_value(const Threshold& options, float residual) {
  if (options.form == Threshold::Form::values) return residual;
  return residual < 0 ? -options.threshold : options.threshold;
}

/// Returns the part of a sent element that stays in the residual. In the form `values` it is 0; the
/// difference of residual and sent value would be NaN for an infinite residual.
STARLING_HOST_DEVICE inline float kept_value(const Threshold& options, float residual) {
  return options.form == Threshold::Form::values ? 0 : residual - sent_value(options, residual);
}

}  // namespace starling::models
