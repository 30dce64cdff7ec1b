/// Broadcast holds a constant value that all tasks of a flow read, such as a lookup table.
/// Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {

/// Copies share one value, so a function that holds a Broadcast is cheap to copy. Nothing is sent:
/// on several nodes, the program of each member makes the value itself, and all members must make
/// equal values. T must be a Record (kinds.hpp).
template <class T>
class Broadcast {
 public:
  explicit Broadcast(T value) : value_(std::make_shared<const T>(std::move(value))) {
    require_record<T>();
  }

  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }

 private:
  std::shared_ptr<const T> value_;
};

}  // namespace starling::flow
