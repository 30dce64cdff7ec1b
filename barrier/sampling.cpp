#include "starling/barrier/sampling.hpp"

#include <cmath>
#include <optional>
#include <string>

#include "starling/base/text.hpp"

namespace starling::barrier {
namespace {

/// Draws one entry of `left`, or one of `others` numbers of weight 1 that are not in `left`.
/// Returns the position of the entry in `left`; nullopt for one of the others. Requires: left is
/// not empty or others > 0.
std::optional<std::size_t> pick(std::span<const Weighted> left, std::uint64_t others,
                                Random& random) {
  double total = static_cast<double>(others);
  for (const Weighted& entry : left) total += entry.weight;
  double at = random.real() * total - static_cast<double>(others);
  if (others > 0 && at < 0) return std::nullopt;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (at < left[i].weight) return i;
    at -= left[i].weight;
  }
  // The sums were rounded, and `at` is beyond the last weight.
  return left.empty() ? std::nullopt : std::optional{left.size() - 1};
}

/// Returns the number that has the rank `rank`, counted from 0, among the numbers that `weights`
/// does not contain.
std::uint32_t number_without_weight(std::uint32_t rank, std::span<const Weighted> weights) {
  // Before weights[i] there are weights[i].number - i numbers without a weight.
  std::size_t low = 0;
  std::size_t high = weights.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (weights[middle].number - middle <= rank)
      low = middle + 1;
    else
      high = middle;
  }
  return rank + static_cast<std::uint32_t>(low);
}

}  // namespace

Result<void> check_weights(std::uint32_t population, std::span<const Weighted> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto [number, weight] = weights[i];
    const std::string subject = "weight " + print_number(weight) + " of number " +
                                std::to_string(number) + ", at position " + std::to_string(i);
    if (number >= population)
      return Error{subject + ": there is no such number; valid: below " +
                   std::to_string(population)};
    if (i > 0 && number <= weights[i - 1].number)
      return Error{subject + ": comes after number " + std::to_string(weights[i - 1].number) +
                   "; valid: numbers that ascend, each once"};
    if (!(weight >= weight_min && weight <= weight_max))
      return Error{subject + ": valid: a number from " + print_number(weight_min) + " to " +
                   print_number(weight_max)};
  }
  return {};
}

void draw_weighted(std::uint32_t population, std::uint32_t count, std::span<const Weighted> weights,
                   Random& random, std::vector<std::uint32_t>& drawn) {
  if (weights.empty()) return draw(population, count, random, drawn);
  std::vector<Weighted> left(weights.begin(), weights.end());
  std::vector<std::uint32_t> with_weight;
  const auto others = population - static_cast<std::uint32_t>(weights.size());
  std::uint32_t others_left = others;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const auto picked = pick(left, others_left, random)) {
      with_weight.push_back(left[*picked].number);
      left[*picked] = left.back();
      left.pop_back();
    } else {
      --others_left;
    }
  }
  // The numbers of weight 1 are equally likely, so all subsets of the same size are, too.
  draw(others, others - others_left, random, drawn);
  for (std::uint32_t& rank : drawn) rank = number_without_weight(rank, weights);
  drawn.insert(drawn.end(), with_weight.begin(), with_weight.end());
}

}  // namespace starling::barrier
