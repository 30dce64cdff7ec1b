#include "starling/base/fields.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace starling {
namespace {

struct Inner {
  int x = 0;
};

struct Complete {
  std::optional<unsigned> a;
  std::vector<int> b;
  std::variant<int, Inner> c;
  std::shared_ptr<const Inner> d;
  Inner e;
  bool f = false;

  static constexpr auto fields(auto& m) { return std::tie(m.a, m.b, m.c, m.d, m.e, m.f); }
};

/// fields() leaves out the last field, so fields_of() does not compile for this struct.
struct WithoutLast {
  int a = 0;
  bool b = false;
  static constexpr auto fields(auto& m) { return std::tie(m.a); }
};

TEST(Fields, AreCountedForAllTypes) {
  EXPECT_TRUE((detail::HasFields<Complete, 6>));
  EXPECT_FALSE((detail::HasFields<Complete, 7>));
  EXPECT_TRUE((detail::HasFields<WithoutLast, 2>));
  EXPECT_FALSE((detail::HasFields<WithoutLast, 3>));
}

struct Eighteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r;
};

TEST(Fields, AreCountedUpToOneMoreThanMayBeListed) {
  EXPECT_TRUE((detail::HasFields<Eighteen, 17>));
  EXPECT_TRUE((detail::HasFields<Eighteen, 18>)) << "a list of 17 of the 18 would compile";
}

TEST(Fields, AreReferencesInTheListedOrder) {
  Complete complete;
  std::get<1>(fields_of(complete)).push_back(7);
  EXPECT_EQ(complete.b, std::vector{7});
  const Complete& constant = complete;
  EXPECT_EQ(&std::get<5>(fields_of(constant)), &complete.f);
}

}  // namespace
}  // namespace starling
