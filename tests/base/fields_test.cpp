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

struct Whole {
  std::optional<unsigned> a;
  std::vector<int> b;
  std::variant<int, Inner> c;
  std::shared_ptr<const Inner> d;
  Inner e;
  bool f = false;

  static constexpr auto fields(auto& m) { return std::tie(m.a, m.b, m.c, m.d, m.e, m.f); }
};

struct WithoutLast {
  int a = 0;
  bool b = false;
  static constexpr auto fields(auto& m) { return std::tie(m.a); }
};

TEST(Fields, AreCountedWhateverTheirTypes) {
  EXPECT_TRUE((detail::HasFields<Whole, 6>));
  EXPECT_FALSE((detail::HasFields<Whole, 7>));
  EXPECT_TRUE((detail::HasFields<WithoutLast, 2>));  // so its list of one does not compile
  EXPECT_FALSE((detail::HasFields<WithoutLast, 3>));
}

struct Seventeen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};

TEST(Fields, AreCountedBeyondTheMostThatMayBeListed) {
  EXPECT_TRUE((detail::HasFields<Seventeen, 16>));
  EXPECT_TRUE((detail::HasFields<Seventeen, 17>));  // so its list of 16 does not compile
}

TEST(Fields, AreReferencesInTheOrderOfTheList) {
  Whole whole;
  std::get<1>(fields_of(whole)).push_back(7);
  EXPECT_EQ(whole.b, std::vector{7});
  const Whole& read = whole;
  EXPECT_EQ(&std::get<5>(fields_of(read)), &whole.f);
}

}  // namespace
}  // namespace starling
