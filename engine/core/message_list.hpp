/// Lists of message types. Variants and the actors' interfaces are generated from them.
#pragma once

#include <type_traits>
#include <variant>

namespace starling::core {

template <class... Ms>
struct MessageList {};

namespace detail {

template <class M, class List>
inline constexpr bool is_in = false;
template <class M, class... Ms>
inline constexpr bool is_in<M, MessageList<Ms...>> = (std::is_same_v<M, Ms> || ...);

template <class... Ms, class... Ns>
MessageList<Ms..., Ns...> join(MessageList<Ms...>, MessageList<Ns...>);

template <class... Ms>
std::variant<Ms...> any_of(MessageList<Ms...>);

}  // namespace detail

/// True if the list contains M.
template <class M, class List>
concept IsIn = detail::is_in<M, List>;

/// Concatenates two lists.
template <class First, class Second>
using Joined = decltype(detail::join(First{}, Second{}));

/// A variant of the list's types, in the list's order.
template <class List>
using AnyOf = decltype(detail::any_of(List{}));

}  // namespace starling::core
