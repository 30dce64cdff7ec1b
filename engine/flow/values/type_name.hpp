/// The types of records as text, which says how their bytes are laid out. Pure functions;
/// thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "starling/engine/flow/values/kinds.hpp"

namespace starling::flow {
namespace detail {

/// An object for each type, whose address tells types apart.
template <class T>
inline constexpr char type_tag = 0;

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t n>
inline constexpr bool is_array<std::array<T, n>> = true;

/// Writes types. `open_` has the structs whose fields it is writing, because a struct may hold
/// itself.
class TypePrinter {
 public:
  template <class T>
  void print() {
    if constexpr (std::is_same_v<T, bool>) {
      text += "bool";
    } else if constexpr (std::is_floating_point_v<T>) {
      text += "f" + std::to_string(8 * sizeof(T));
    } else if constexpr (Arithmetic<T>) {
      text += (std::is_signed_v<T> ? "i" : "u") + std::to_string(8 * sizeof(T));
    } else if constexpr (Enumeration<T>) {
      text += "enum" + std::to_string(8 * sizeof(T));
    } else if constexpr (Text<T>) {
      text += "string";
    } else if constexpr (Vector<T> || Optional<T>) {
      text += Vector<T> ? "vector<" : "optional<";
      print<typename T::value_type>();
      text += ">";
    } else if constexpr (is_array<T>) {
      text += "array<";
      print<typename T::value_type>();
      text += ", " + std::to_string(std::tuple_size_v<T>) + ">";
    } else if constexpr (Tuple<T>) {
      print_all<T>("(", ")");
    } else if (std::ranges::count(open_, &type_tag<T>) > 0) {
      text += "{...}";
    } else {
      open_.push_back(&type_tag<T>);
      print_all<decltype(T::fields(std::declval<T&>()))>("{", "}");
      open_.pop_back();
    }
  }

  std::string text;

 private:
  template <class Elements>
  void print_all(const char* begin, const char* end) {
    const char* separator = begin;
    const auto print_one = [&]<class E>(std::type_identity<E>) {
      text += separator;
      separator = ", ";
      print<std::remove_cvref_t<E>>();
    };
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (print_one(std::type_identity<std::tuple_element_t<i, Elements>>{}), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Elements>>{});
    if (separator == begin) text += begin;
    text += end;
  }

  std::vector<const char*> open_;
};

}  // namespace detail

/// Returns the type of a record as text: "(string, vector<i32>)" for a pair of a string and a
/// vector of int, and "{f64, u8}" for a struct with such fields. Equal texts mean equal layouts of
/// bytes.
template <Record T>
[[nodiscard]] std::string type_name() {
  detail::TypePrinter printer;
  printer.print<T>();
  return printer.text;
}

}  // namespace starling::flow
