/// Does not compile, on purpose: the key has no operator==. A test reads the compiler's message.
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/engine/flow/chain/sources.hpp"
#include "starling/engine/flow/set.hpp"

struct Key {
  int number = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.number); }
};

int main() {
  using Pair = std::pair<Key, int>;
  using Chain = starling::flow::CollectionChain<Pair>;
  const starling::flow::Set<Pair, Chain> set{nullptr, Chain{{}, 1}};
  (void)set.group_by_key();
}
