/// Lists of types, such as messages. Variants and the actors' interfaces are generated from them.
#pragma once

#include <type_traits>
#include <variant>

namespace starling::core {

template <class... Ms>
struct TypeList {};

namespace detail {

template <class M, class List>
inline constexpr bool is_in = false;
template <class M, class... Ms>
inline constexpr bool is_in<M, TypeList<Ms...>> = (std::is_same_v<M, Ms> || ...);

template <class... Lists>
struct Concatenation {
  using Type = TypeList<>;
};
template <class... Ms>
struct Concatenation<TypeList<Ms...>> {
  using Type = TypeList<Ms...>;
};
template <class... Ms, class... Lists>
struct Concatenation<TypeList<Ms...>, TypeList<>, Lists...>
    : Concatenation<TypeList<Ms...>, Lists...> {};
template <class... Ms, class N, class... Ns, class... Lists>
struct Concatenation<TypeList<Ms...>, TypeList<N, Ns...>, Lists...>
    : Concatenation<
          std::conditional_t<is_in<N, TypeList<Ms...>>, TypeList<Ms...>, TypeList<Ms..., N>>,
          TypeList<Ns...>, Lists...> {};

template <class... Ms>
std::variant<Ms...> any_of(TypeList<Ms...>);

}  // namespace detail

/// True if the list contains M.
template <class M, class List>
concept IsIn = detail::is_in<M, List>;

/// Concatenates lists. A type that occurs again is left out.
template <class... Lists>
using Concat = typename detail::Concatenation<Lists...>::Type;

/// A variant of the list's types, in the list's order.
template <class List>
using AnyOf = decltype(detail::any_of(List{}));

}  // namespace starling::core
