/// A value that all tasks read, such as a table for a lookup. Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {

/// Copies share one value, so a function that holds a Broadcast is cheap to copy. On several nodes,
/// the program of each member makes the value itself.
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
