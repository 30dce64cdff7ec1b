/// Closed sets: a std::variant of alternatives, each in a file of its own, that flags and job files
/// name in the grammar of spec.hpp. The variant is the only list of them.
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

/// An alternative that text can name.
template <class A>
concept Alternative = std::regular<A> && requires(const A alternative, SpecReader& options) {
  /// The word that is parsed, printed and stored.
  { A::name } -> std::convertible_to<std::string_view>;
  /// Reads and prints `key=value` options; an empty text means there are none.
  { A::parse(options) } -> std::same_as<A>;
  { alternative.options() } -> std::convertible_to<std::string>;
};

/// Calls `visit(A{})` for each alternative A of the set.
template <class Set, class Visit>
void for_each_alternative(Visit visit) {
  [&]<class... As>(std::type_identity<std::variant<As...>>) {
    (visit(As{}), ...);
  }(std::type_identity<Set>{});
}

/// Returns the alternatives' forms as `--help` lists them: "a:x=1 | b". An alternative's `form` is
/// an example of it as text.
template <class Set>
[[nodiscard]] std::string forms_of(std::string_view separator = " | ") {
  std::string forms;
  for_each_alternative<Set>([&]<class A>(const A&) {
    if (!forms.empty()) forms += separator;
    forms += A::form;
  });
  return forms;
}

/// Reads `name[:options]`. Errors name the set as `what`.
template <class Set>
[[nodiscard]] Result<Set> parse_alternative(const std::string& what, std::string_view text) {
  const auto spec = Spec::parse(text);
  if (!spec) return Error{what + ": " + spec.error().message};
  SpecReader read{*spec};
  std::optional<Set> found;
  std::vector<std::string> names;
  for_each_alternative<Set>([&]<Alternative A>(const A&) {
    names.emplace_back(A::name);
    if (spec->name == A::name) found = A::parse(read);
  });
  if (!found)
    return Error{"unknown " + what + " '" + spec->name + "'; " + suggest(spec->name, names)};
  if (auto done = read.finish(); !done) return std::move(done).error();
  return *std::move(found);
}

/// The text that parse_alternative reads back.
template <class... As>
[[nodiscard]] std::string print_alternative(const std::variant<As...>& any) {
  return std::visit(
      []<class A>(const A& alternative) {
        const std::string options = alternative.options();
        return std::string{A::name} + (options.empty() ? "" : ":" + options);
      },
      any);
}

}  // namespace starling
