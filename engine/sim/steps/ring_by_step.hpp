/// A ring buffer with one element for each step from the slowest to the fastest worker. Not
/// thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::sim {

/// A queue that is indexed by step. It holds one element for each step in [first(), end()); both
/// bounds only rise. The memory of popped elements is used again.
template <class T>
class RingByStep {
 public:
  [[nodiscard]] core::Step first() const noexcept { return first_; }
  [[nodiscard]] core::Step end() const noexcept { return end_; }

  /// Requires: first <= step < end.
  [[nodiscard]] T& operator[](core::Step step) { return slots_[step & (slots_.size() - 1)]; }
  [[nodiscard]] const T& operator[](core::Step step) const {
    return slots_[step & (slots_.size() - 1)];
  }

  /// Adds an element for step end(), and returns it. The element may still have the value of a
  /// popped one, which the caller overwrites.
  T& push() {
    if (end_ - first_ == slots_.size()) grow();
    return slots_[end_++ & (slots_.size() - 1)];
  }

  /// Removes the element of step first().
  void pop() {
    STARLING_CHECK(first_ < end_);
    ++first_;
  }

 private:
  void grow() {
    std::vector<T> larger(2 * slots_.size());
    for (core::Step step = first_; step < end_; ++step)
      larger[step & (larger.size() - 1)] = std::move((*this)[step]);
    slots_ = std::move(larger);
  }

  std::vector<T> slots_{16};  // a power of two
  core::Step first_ = 0;
  core::Step end_ = 0;
};

}  // namespace starling::sim
