/// A plain struct lists its fields once; codecs, sizes and checks are derived from the list:
///
///     struct Pull {
///       MemberId worker;
///       RangeId range;
///       static constexpr auto fields(auto& m) { return std::tie(m.worker, m.range); }
///     };
///
/// A list that leaves a field out does not compile. A struct that leaves `n` fields out on purpose
/// declares `static constexpr std::size_t fields_unlisted = n;`.
///
/// An enumeration that is the type of a field needs a function that returns its last enumerator:
/// `constexpr State last_of(State) { return State::failed; }`.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace starling {

/// A struct that lists its fields.
template <class M>
concept Fielded = requires(M& m) {
  std::remove_const_t<M>::fields(m);
};

namespace detail {

// clang-format off
/// True if `n` pairs of braces initialise M, which means that M has `n` fields or more.
template <class M, std::size_t n>
concept HasFields = (n == 0)
  || (n == 1 && requires { M{{}}; })
  || (n == 2 && requires { M{{}, {}}; })
  || (n == 3 && requires { M{{}, {}, {}}; })
  || (n == 4 && requires { M{{}, {}, {}, {}}; })
  || (n == 5 && requires { M{{}, {}, {}, {}, {}}; })
  || (n == 6 && requires { M{{}, {}, {}, {}, {}, {}}; })
  || (n == 7 && requires { M{{}, {}, {}, {}, {}, {}, {}}; })
  || (n == 8 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 9 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 10 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 11 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 12 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 13 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 14 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 15 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 16 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 17 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
  || (n == 18 && requires { M{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; });
// clang-format on

template <class M>
consteval std::size_t unlisted_fields() {
  if constexpr (requires { M::fields_unlisted; })
    return M::fields_unlisted;
  else
    return 0;
}

}  // namespace detail

/// Returns references to the fields of `m`, as a tuple.
template <Fielded M>
constexpr auto fields_of(M& m) {
  using Plain = std::remove_const_t<M>;
  auto fields = Plain::fields(m);
  constexpr std::size_t n = std::tuple_size_v<decltype(fields)> + detail::unlisted_fields<Plain>();
  static_assert(n < 18, "a struct may have at most 17 fields");
  static_assert(detail::HasFields<Plain, n> && !detail::HasFields<Plain, n + 1>,
                "fields() leaves a field out");
  return fields;
}

}  // namespace starling
