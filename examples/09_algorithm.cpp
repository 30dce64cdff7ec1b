// An algorithm for the engines as a part of a user's own program: k-means, which runs in one
// process or on the nodes of a cluster. Under bsp, each step of the workers is one step of Lloyd's
// algorithm over all samples, and the result is the same to the bit wherever it runs.
//
//     cmake --preset dev && cmake --build --preset dev --target 09_algorithm
//     build/dev/examples/09_algorithm train --model kmeans:k=10,steps=8 --steps 8
//         --data digits:n=2000 --mode central --barrier bsp --save k.safetensors --quiet
//
// The command is one line. The summary ends with the mean squared distance of a sample from its
// centre:
//
//     test        distance 41.73
//
// On three nodes, here on one machine; the last command is one line:
//
//     build/dev/examples/09_algorithm node --listen 127.0.0.1:7401 &
//     build/dev/examples/09_algorithm node --listen 127.0.0.1:7402 --join 127.0.0.1:7401 &
//     build/dev/examples/09_algorithm node --listen 127.0.0.1:7403 --join 127.0.0.1:7401 &
//     build/dev/examples/09_algorithm submit --to 127.0.0.1:7402 --model kmeans:k=10,steps=8
//         --steps 8 --data digits:n=2000 --mode central --barrier bsp --save k.safetensors
#include <algorithm>
#include <limits>
#include <vector>

#include "starling/starling.hpp"

using namespace starling;
using models::Table;

/// The tensors hold what each step has found, one row for each step: so a worker needs no memory of
/// its own, which would be lost with its node.
///
///     sums      for each cluster the sum of its samples, and their number
///     distance  the sum of the samples' squared distances from their centres, and their number
class KMeans {
 public:
  KMeans(const Table& data, std::size_t clusters, std::size_t steps)
      : data_(data), clusters_(clusters), steps_(steps) {}

  [[nodiscard]] std::vector<actor::Tensor<double>> tensors() const {
    return {actor::Tensor<double>::by_rows("sums", {steps_, clusters_, width()}),
            actor::Tensor<double>::by_rows("distance", {steps_, 2})};
  }

  /// A worker reads what the step before has found.
  static std::vector<actor::Selection> schedule(const actor::StepContext<double>& context) {
    const auto step = static_cast<std::uint32_t>(context.step());
    return {{"sums", std::vector{step == 0 ? 0 : step - 1}}};
  }

  /// The current workers share the samples, so a step after a worker has died covers all of them.
  [[nodiscard]] std::vector<actor::Update<double>> push(
      const actor::StepContext<double>& context) const {
    const auto step = static_cast<std::uint32_t>(context.step());
    std::vector<double> sums(clusters_ * width());
    double total = 0;
    double count = 0;
    const auto centres =
        centres_of(context.step() == 0 ? std::span<const double>{} : context.row("sums", step - 1));
    for (std::size_t i = context.share(); i < data_.size(); i += context.shares()) {
      const auto x = data_.dense_row(i);
      std::size_t best = 0;
      double nearest = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < clusters_; ++c)
        if (const double d = squared_distance(x, centres[c]); d < nearest) best = c, nearest = d;
      for (std::size_t j = 0; j < x.size(); ++j) sums[best * width() + j] += x[j];
      sums[best * width() + x.size()] += 1;
      total += nearest;
      count += 1;
    }
    return {{"sums", std::move(sums), std::vector{step}},
            {"distance", {total, count}, std::vector{step}}};
  }

  /// Returns the mean squared distance of a sample from its centre, in the last step that was made.
  static models::Metrics evaluate(const actor::Tensors<double>& tensors) {
    double distance = 0;
    const auto found = tensors.get("distance");
    for (std::size_t step = 0; step < found.size(); step += 2)
      if (found[step + 1] > 0) distance = found[step] / found[step + 1];
    return {{"distance", distance}};
  }

 private:
  /// The number of values of a cluster in `sums`: one for each feature, and the number of samples.
  [[nodiscard]] std::size_t width() const { return data_.features() + 1; }

  /// Returns the means of the clusters whose sums are `sums`. The centre of an empty cluster, and
  /// of each before the first step, is a sample.
  [[nodiscard]] std::vector<std::vector<double>> centres_of(std::span<const double> sums) const {
    std::vector<std::vector<double>> centres;
    for (std::size_t c = 0; c < clusters_; ++c) {
      const auto sample = data_.dense_row(c % data_.size());
      std::vector<double> centre(sample.begin(), sample.end());
      const auto row = sums.empty() ? sums : sums.subspan(c * width(), width());
      if (!row.empty() && row.back() > 0)
        std::transform(row.begin(), row.end() - 1, centre.begin(),
                       [count = row.back()](double sum) { return sum / count; });
      centres.push_back(std::move(centre));
    }
    return centres;
  }

  static double squared_distance(std::span<const float> x, const std::vector<double>& centre) {
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += (x[j] - centre[j]) * (x[j] - centre[j]);
    return sum;
  }

  const Table& data_;
  std::size_t clusters_;
  std::size_t steps_;
};

/// Makes the algorithm of `--model kmeans:k=10,steps=8` for the data.
actor::Algorithm<double> make_kmeans(SpecReader& options, const Table& data) {
  const KMeans kmeans{data, options.count("k", 10, 1, 1000), options.count("steps", 10, 1, 10'000)};
  return {.tensors = kmeans.tensors(),
          .hooks = {.schedule = [](auto& context) { return KMeans::schedule(context); },
                    .push = [kmeans](auto& context) { return kmeans.push(context); }},
          .evaluate = [](const auto& tensors) { return KMeans::evaluate(tensors); }};
}

int main(int argc, char** argv) {
  Registry registry;
  registry.algorithm<double>("kmeans", "k-means: kmeans[:k=10,steps=10]", make_kmeans);
  return starling::main(argc, argv, std::move(registry));
}
