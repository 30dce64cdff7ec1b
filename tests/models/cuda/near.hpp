/// Compares the results of a kernel with the CPU's. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace starling::models::cuda {

/// Expects that each element differs by at most `within`, or by `within` times the expected element
/// if that is above 1.
inline void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                        float within) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], within * std::max(1.0F, std::abs(expected[i])))
        << "at " << i;
}

}  // namespace starling::models::cuda
