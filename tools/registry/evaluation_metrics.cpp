#include "starling/tools/registry/evaluation_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "starling/base/check.hpp"

namespace starling::program {

ClassificationMetrics classification_metrics(std::size_t classes, std::span<const float> labels,
                                             std::span<const float> predictions) {
  STARLING_CHECK(labels.size() == predictions.size());
  ClassificationMetrics metrics;
  if (classes <= confusion_max)
    metrics.confusion.assign(classes, std::vector<std::uint64_t>(classes));
  std::vector<std::uint64_t> correct(classes);
  std::vector<std::uint64_t> predicted(classes);
  std::vector<std::uint64_t> labelled(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto prediction = static_cast<std::size_t>(predictions[i]);
    ++labelled.at(label);
    ++predicted.at(prediction);
    if (label == prediction) ++correct[label];
    if (!metrics.confusion.empty()) ++metrics.confusion[label][prediction];
  }
  const auto share = [](std::uint64_t part, std::uint64_t whole) -> std::optional<double> {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  for (std::size_t c = 0; c < classes; ++c) {
    metrics.precision.push_back(share(correct[c], predicted[c]));
    metrics.recall.push_back(share(correct[c], labelled[c]));
  }
  return metrics;
}

RegressionMetrics regression_metrics(std::span<const double> labels,
                                     std::span<const double> predictions) {
  STARLING_CHECK(!labels.empty() && labels.size() == predictions.size());
  const auto n = static_cast<double>(labels.size());
  const double mean = std::accumulate(labels.begin(), labels.end(), 0.0) / n;
  double absolute_sum = 0;
  double squared_sum = 0;
  double squared_deviation_sum = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double error = predictions[i] - labels[i];
    absolute_sum += std::abs(error);
    squared_sum += error * error;
    squared_deviation_sum += (labels[i] - mean) * (labels[i] - mean);
  }
  RegressionMetrics metrics{absolute_sum / n, std::sqrt(squared_sum / n), std::nullopt};
  if (squared_deviation_sum > 0) metrics.r2 = 1 - squared_sum / squared_deviation_sum;
  return metrics;
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
  double positive_rank_sum = 0;
  double positives = 0;
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    double tied_positives = 0;
    for (; end < order.size() && scores[order[end]] == scores[order[i]]; ++end)
      tied_positives += labels[order[end]] == 1 ? 1 : 0;
    positive_rank_sum +=
        tied_positives * (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    positives += tied_positives;
    i = end;
  }
  const double negatives = static_cast<double>(labels.size()) - positives;
  if (positives == 0 || negatives == 0) return std::nullopt;
  return (positive_rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

std::optional<std::vector<double>> probabilities(const Scores& scores) {
  if (scores.link == models::Link::none) return std::nullopt;
  std::vector<double> result;
  for (std::size_t begin = 0; begin < scores.values.size(); begin += scores.columns) {
    const auto row = std::span{scores.values}.subspan(begin, scores.columns);
    if (scores.link == models::Link::logistic) {
      const double class_1 = 1 / (1 + std::exp(-static_cast<double>(row[0])));
      result.insert(result.end(), {1 - class_1, class_1});
      continue;
    }
    // Subtracts the highest score, which does not change the softmax, so that exp() does not
    // overflow.
    const auto highest = static_cast<double>(*std::ranges::max_element(row));
    double sum = 0;
    for (const float z : row) sum += std::exp(static_cast<double>(z) - highest);
    for (const float z : row) result.push_back(std::exp(static_cast<double>(z) - highest) / sum);
  }
  return result;
}

}  // namespace starling::program
