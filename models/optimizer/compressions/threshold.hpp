#pragma once

#include "starling/models/optimizer/compressions/compression_method.hpp"

namespace starling::models {

/// Sends an element only when the absolute value of its residual r exceeds a threshold t. For each
/// element, with the gradient g:
///
///     r += g;  |r| <= t: nothing is sent
///     values:  r is sent, r = 0                       (Aji, Heafield, EMNLP 2017, algorithm 1)
///     signs:   t sign(r) is sent, r -= t sign(r)      (Strom, Interspeech 2015, section 3)
struct Threshold {
  static constexpr std::string_view name = "threshold";
  static constexpr std::string_view example = "threshold:t=0.001[,signs]";
  static constexpr bool sends_sparse = true;

  enum class Form { values, signs };
  /// At least 0; for the form `signs`, above 0.
  float threshold = 0;
  Form form = Form::values;

  /// Refuses text without a threshold.
  static Threshold parse(SpecReader& reader);
  [[nodiscard]] std::string options() const;

  void compress(std::span<const float> g, std::span<float> residual, std::span<float> sent) const;

  bool operator==(const Threshold&) const = default;
};

/// Returns true if the threshold is in the form's range. With the form `signs` and threshold 0,
/// every value sent would be 0.
[[nodiscard]] constexpr bool is_valid(const Threshold& options) {
  return options.threshold > 0 ||
         (options.threshold == 0 && options.form == Threshold::Form::values);
}

}  // namespace starling::models
