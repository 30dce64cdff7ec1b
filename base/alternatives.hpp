/// Closed sets of alternatives: each set is a std::variant, each alternative is a type in a file of
/// its own. Flags and job files name an alternative in the grammar of spec.hpp.
///
///     using Schedule = std::variant<ConstantRate, StepRate>;
///     auto schedule = parse_alternative<Schedule>("schedule", "step:every=20000");
///
/// Pure functions; any thread.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"

namespace starling {

/// A type of which users can write a value as text: `step:every=20000`.
template <class A>
concept Alternative = std::regular<A> && requires(const A alternative, SpecReader& options) {
  /// The word that is parsed, printed and stored.
  { A::name } -> std::convertible_to<std::string_view>;
  /// Reads the options, `key=value`.
  { A::parse(options) } -> std::same_as<A>;
  /// Prints the options; returns an empty text if there are none.
  { alternative.options() } -> std::convertible_to<std::string>;
};

/// Calls `visit(A{})` for each alternative A of `Set`.
template <class Set, class Visit>
void for_each_alternative(Visit visit) {
  [&]<class... As>(std::type_identity<std::variant<As...>>) {
    (visit(As{}), ...);
  }(std::type_identity<Set>{});
}

/// Returns the example `A::example` of each alternative, as `--help` lists them: "a:x=1 | b".
template <class Set>
[[nodiscard]] std::string examples_of(std::string_view separator = " | ") {
  std::string examples;
  for_each_alternative<Set>([&]<class A>(const A&) {
    if (!examples.empty()) examples += separator;
    examples += A::example;
  });
  return examples;
}

/// Reads `name[:options]`. `noun` says in errors what the set contains: "unknown schedule 'stp'".
template <class Set>
[[nodiscard]] Result<Set> parse_alternative(const std::string& noun, std::string_view text) {
  const auto spec = Spec::parse(text);
  if (!spec) return Error{noun + ": " + spec.error().message};
  SpecReader reader{*spec};
  std::optional<Set> found;
  std::vector<std::string> names;
  for_each_alternative<Set>([&]<Alternative A>(const A&) {
    names.emplace_back(A::name);
    if (spec->name == A::name) found = A::parse(reader);
  });
  if (!found)
    return Error{"unknown " + noun + " '" + spec->name + "'; " + suggest(spec->name, names)};
  if (auto done = reader.finish(); !done) return std::move(done).error();
  return *std::move(found);
}

/// Returns text that parse_alternative reads back to the same value.
template <class... As>
[[nodiscard]] std::string print_alternative(const std::variant<As...>& value) {
  return std::visit(
      []<class A>(const A& alternative) {
        const std::string options = alternative.options();
        return std::string{A::name} + (options.empty() ? "" : ":" + options);
      },
      value);
}

}  // namespace starling
