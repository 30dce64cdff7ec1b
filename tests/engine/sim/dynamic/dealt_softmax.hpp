/// A softmax regression whose samples are dealt anew while the simulated job runs. For tests.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "starling/models/sample_order.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "tests/models/model_data.hpp"

namespace starling::sim::dealt {

using Model = models::Softmax<double>;

inline const models::Table& table() {
  static const models::Table rows = models::dense_table(5'120, 4, 3);
  return rows;
}

inline const Model& model() {
  static const Model softmax = Model::parse(Spec::parse("softmax").value(), table()).value();
  return softmax;
}

/// Expects that the `samples` of the job's computations contain each sample of `epochs` epochs
/// once, but for `lost_max`.
void expect_samples_taken_once(const auto& computations, std::uint64_t epochs,
                               std::size_t lost_max = 0) {
  std::map<models::DealtSample, int> counts;
  for (const auto& computation : computations)
    for (const models::DealtSample sample : computation.samples) ++counts[sample];
  std::size_t lost = 0;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch)
    for (std::uint32_t sample = 0; sample < table().size(); ++sample) {
      const int count = counts[{sample, epoch}];
      ASSERT_LE(count, 1) << "sample " << sample << " of epoch " << epoch;
      lost += count == 0 ? 1 : 0;
    }
  EXPECT_LE(lost, lost_max);
}

}  // namespace starling::sim::dealt
