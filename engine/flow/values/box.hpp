/// A record with one value. Batches hold boxes, because a vector of bool has no references. Plain
/// values.
#pragma once

#include <tuple>

namespace starling::flow {

template <class T>
struct Box {
  T value{};

  static constexpr auto fields(auto& m) { return std::tie(m.value); }
};

}  // namespace starling::flow
