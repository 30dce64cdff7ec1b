#include "starling/tools/registry/figures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "starling/base/check.hpp"

namespace starling::program {

ClassFigures class_figures(std::size_t classes, std::span<const float> labels,
                           std::span<const float> predictions) {
  STARLING_CHECK(labels.size() == predictions.size());
  ClassFigures figures;
  if (classes <= confusion_max)
    figures.confusion.assign(classes, std::vector<std::uint64_t>(classes));
  std::vector<std::uint64_t> right(classes);
  std::vector<std::uint64_t> predicted(classes);
  std::vector<std::uint64_t> labelled(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto prediction = static_cast<std::size_t>(predictions[i]);
    ++labelled.at(label);
    ++predicted.at(prediction);
    if (label == prediction) ++right[label];
    if (!figures.confusion.empty()) ++figures.confusion[label][prediction];
  }
  const auto share = [](std::uint64_t part, std::uint64_t all) -> std::optional<double> {
    if (all == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(all);
  };
  for (std::size_t c = 0; c < classes; ++c) {
    figures.precision.push_back(share(right[c], predicted[c]));
    figures.recall.push_back(share(right[c], labelled[c]));
  }
  return figures;
}

TargetFigures target_figures(std::span<const double> labels, std::span<const double> predictions) {
  STARLING_CHECK(!labels.empty() && labels.size() == predictions.size());
  const auto n = static_cast<double>(labels.size());
  const double mean = std::accumulate(labels.begin(), labels.end(), 0.0) / n;
  double absolute = 0;
  double squares = 0;
  double spread = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double error = predictions[i] - labels[i];
    absolute += std::abs(error);
    squares += error * error;
    spread += (labels[i] - mean) * (labels[i] - mean);
  }
  TargetFigures figures{absolute / n, std::sqrt(squares / n), std::nullopt};
  if (spread > 0) figures.r2 = 1 - squares / spread;
  return figures;
}

std::optional<double> area_under_curve(std::span<const float> labels,
                                       std::span<const float> scores) {
  STARLING_CHECK(labels.size() == scores.size());
  if (!std::ranges::all_of(scores, [](float score) { return std::isfinite(score); }))
    return std::nullopt;
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return scores[i]; });
  // Ranks count from 1. Samples with the same score share the mean of their ranks.
  double ranks = 0;
  double positives = 0;
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    double ones = 0;
    for (; end < order.size() && scores[order[end]] == scores[order[i]]; ++end)
      ones += labels[order[end]] == 1 ? 1 : 0;
    ranks += ones * (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    positives += ones;
    i = end;
  }
  const double negatives = static_cast<double>(labels.size()) - positives;
  if (positives == 0 || negatives == 0) return std::nullopt;
  return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

std::optional<std::vector<double>> probabilities(const Scores& scores) {
  if (scores.link == models::Link::none) return std::nullopt;
  std::vector<double> all;
  for (std::size_t at = 0; at < scores.values.size(); at += scores.columns) {
    const auto row = std::span{scores.values}.subspan(at, scores.columns);
    if (scores.link == models::Link::logistic) {
      const double one = 1 / (1 + std::exp(-static_cast<double>(row[0])));
      all.insert(all.end(), {1 - one, one});
      continue;
    }
    const auto most = static_cast<double>(*std::ranges::max_element(row));
    double sum = 0;
    for (const float z : row) sum += std::exp(static_cast<double>(z) - most);
    for (const float z : row) all.push_back(std::exp(static_cast<double>(z) - most) / sum);
  }
  return all;
}

}  // namespace starling::program
