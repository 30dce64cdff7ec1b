/// A comparison of what a kernel computes with what the CPU does. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace starling::models::cuda {

/// Each element differs by no more than `within`, relative to it where it is above 1.
inline void expect_near(const std::vector<float>& seen, const std::vector<float>& wanted,
                        float within) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    ASSERT_NEAR(seen[i], wanted[i], within * std::max(1.0F, std::abs(wanted[i]))) << "at " << i;
}

}  // namespace starling::models::cuda
