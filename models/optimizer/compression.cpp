#include "starling/models/optimizer/compression.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/optimizer/threshold_element.hpp"

namespace starling::models {
namespace {

/// Returns the shortest decimal text of a float; print_number() would print the double.
std::string print_shortest(float x) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), x).ptr};
}

/// Returns the bfloat16 that is nearest to a finite `x`, as a float. A value that rounds to
/// infinity becomes the largest bfloat16.
float nearest_bf16(float x) {
  constexpr std::uint32_t upper_half = 0xFFFF0000U;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7FFFU + (bits >> 16U & 1U)) & upper_half;
  const float nearest = std::bit_cast<float>(rounded);
  return std::isfinite(nearest) ? nearest : std::bit_cast<float>(bits & upper_half);
}

}  // namespace

// --- the rules ----------------------------------------------------------------------------------

Threshold Threshold::parse(SpecReader& reader) {
  Threshold rule;
  if (!reader.has("t")) reader.refuse("needs t, e.g. threshold:t=0.001");
  rule.form = reader.flag("signs") ? Form::signs : Form::values;
  const double threshold = reader.number("t", 0.001, 0, std::numeric_limits<float>::max());
  rule.threshold = static_cast<float>(threshold);
  if (rule.threshold == 0 && (threshold > 0 || rule.form == Form::signs))
    reader.refuse("t=" + print_number(threshold) + (threshold > 0 ? " is 0 as a float" : "") +
                  "; valid: " + (rule.form == Form::signs ? "" : "0, or ") +
                  "a threshold above 1e-45, e.g. threshold:t=0.001");
  return rule;
}

std::string Threshold::options() const {
  return "t=" + print_shortest(threshold) + (form == Form::signs ? ",signs" : "");
}

void Threshold::compress(std::span<const float> g, std::span<float> residual,
                         std::span<float> sent) const {
  axpy(1.0F, g, residual);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const float sum = residual[i];
    const bool is_over = is_sent(*this, sum);
    sent[i] = is_over ? sent_value(*this, sum) : 0;
    residual[i] = is_over ? kept_value(*this, sum) : sum;
  }
}

TopK TopK::parse(SpecReader& reader) {
  const std::string text = reader.text("share", "1%");
  const auto number =
      text.ends_with('%') ? parse_number(text.substr(0, text.size() - 1)) : parse_number(text);
  const double share = !number ? 0 : text.ends_with('%') ? *number / 100 : *number;
  if (!(share > 0 && share <= 1)) {
    reader.refuse("share=" + text +
                  " is not a share of the elements; valid: above 0 %, up to "
                  "100 %, e.g. " +
                  std::string{example});
    return {};
  }
  return {share};
}

std::string TopK::options() const {
  const std::string percent = print_percent(share);
  const auto number = parse_number(percent.substr(0, percent.size() - 1));
  return "share=" + (number && *number / 100 == share ? percent : print_number(share));
}

void TopK::compress(std::span<const float> g, std::span<float> residual,
                    std::span<float> sent) const {
  axpy(1.0F, g, residual);
  std::ranges::fill(sent, 0.0F);
  if (residual.empty()) return;
  // Adds 1e-6, because rounding may make the product too small: 57 % of 10,000 is 5699.999... as a
  // double.
  const double exact = share * static_cast<double>(residual.size()) + 1e-6;
  const auto count = std::clamp<std::size_t>(static_cast<std::size_t>(exact), 1, residual.size());
  std::vector<float> sizes(residual.size());
  std::ranges::transform(residual, sizes.begin(), [](float x) { return std::abs(x); });
  const auto last = sizes.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::ranges::nth_element(sizes, last, std::ranges::greater{});
  const float least = *last;
  // Sends all elements with a larger absolute value than `least`, and `equal_left` of those whose
  // absolute value is `least`.
  std::size_t equal_left = static_cast<std::size_t>(std::count(sizes.begin(), last + 1, least));
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const float size = std::abs(residual[i]);
    if (size < least || (size == least && equal_left == 0)) continue;
    if (size == least) --equal_left;
    sent[i] = residual[i];
    residual[i] = 0;
  }
}

void Bf16::compress(std::span<const float> g, std::span<float> residual,
                    std::span<float> sent) const {
  axpy(1.0F, g, residual);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    sent[i] = nearest_bf16(residual[i]);
    residual[i] -= sent[i];
  }
}

void Bf16::round(std::span<float> values, std::span<float> errors) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float rounded = nearest_bf16(values[i]);
    errors[i] += values[i] - rounded;
    values[i] = rounded;
  }
}

// --- the set ------------------------------------------------------------------------------------

Result<Compression> parse_compression(std::string_view text) {
  return parse_alternative<Compression>("compression", text);
}

std::string print(const Compression& compression) { return print_alternative(compression); }

bool compresses(const Compression& compression) {
  return !std::holds_alternative<NoCompression>(compression);
}

bool sends_sparse(const Compression& compression) {
  return std::visit([]<CompressionMethod C>(const C&) { return C::sends_sparse; }, compression);
}

void compress(const Compression& compression, std::span<const float> g, std::span<float> residual,
              std::span<float> sent) {
  std::visit([&](const CompressionMethod auto& rule) { rule.compress(g, residual, sent); },
             compression);
}

}  // namespace starling::models
