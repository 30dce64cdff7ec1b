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

template <class... Lists>
struct Joining {
  using Type = MessageList<>;
};
template <class... Ms>
struct Joining<MessageList<Ms...>> {
  using Type = MessageList<Ms...>;
};
template <class... Ms, class... Lists>
struct Joining<MessageList<Ms...>, MessageList<>, Lists...>
    : Joining<MessageList<Ms...>, Lists...> {};
template <class... Ms, class N, class... Ns, class... Lists>
struct Joining<MessageList<Ms...>, MessageList<N, Ns...>, Lists...>
    : Joining<std::conditional_t<is_in<N, MessageList<Ms...>>, MessageList<Ms...>,
                                 MessageList<Ms..., N>>,
              MessageList<Ns...>, Lists...> {};

template <class... Ms>
std::variant<Ms...> any_of(MessageList<Ms...>);

}  // namespace detail

/// True if the list contains M.
template <class M, class List>
concept IsIn = detail::is_in<M, List>;

/// Concatenates lists, without the types that are in the list already.
template <class... Lists>
using Joined = typename detail::Joining<Lists...>::Type;

/// A variant of the list's types, in the list's order.
template <class List>
using AnyOf = decltype(detail::any_of(List{}));

}  // namespace starling::core
