/// Writes texts so that a shell takes each of them as one word.
#pragma once

#include <string>
#include <string_view>

namespace starling::program {

/// Returns `word` in single quotes.
[[nodiscard]] inline std::string quoted_for_shell(std::string_view word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

/// Returns `word`, in single quotes if a shell would not take it as it is.
[[nodiscard]] inline std::string shell_word(std::string_view word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=,+-%@";
  const bool is_plain = !word.empty() && word.find_first_not_of(plain) == std::string_view::npos;
  return is_plain ? std::string{word} : quoted_for_shell(word);
}

}  // namespace starling::program
