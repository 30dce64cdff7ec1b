/// Counts the words of text files with the map-reduce engine, and prints the ten most frequent.
///
///     cmake --preset dev && cmake --build --preset dev --target 11_word_count
///     build/dev/examples/11_word_count README.md docs/quickstart.md
///
/// Without arguments it counts the words of a text that it generates, of which one word in ten is
/// "starling". The first line is then
///
///     1000 starling
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/flow/map_reduce.hpp"

using namespace starling;

/// Returns the words of a line in lower case.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : line + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

/// Counts the words, sorts them by their counts, and takes the first.
Result<std::vector<std::pair<std::string, std::uint64_t>>> most_frequent(
    const flow::Set<std::string>& lines) {
  return lines.flat_map(words_of)
      .map([](const std::string& word) {
        return std::pair{word, std::uint64_t{1}};
      })
      .reduce_by_key(std::plus<>{})
      .sort_by([](const auto& entry) {
        // Sorts in ascending order, so ~ puts the largest count first.
        return std::pair{~entry.second, entry.first};
      })
      .take(10);
}

int main(int argc, char** argv) {
  const auto fail = [](const Error& error) {
    std::cerr << error.message << '\n';
    return 1;
  };
  const auto engine = flow::MapReduce::make({.threads = 4});
  if (!engine) return fail(engine.error());
  flow::Set<std::string> lines = engine->generate(10'000, [](std::uint64_t i) {
    return i % 10 == 0 ? std::string{"starling"} : "word" + std::to_string(i % 1000);
  });
  if (argc > 1) {
    const auto text = engine->text({argv + 1, argv + argc});
    if (!text) return fail(text.error());
    lines = *text;
  }
  const auto counts = most_frequent(lines);
  if (!counts) return fail(counts.error());
  for (const auto& [word, count] : *counts) std::cout << count << ' ' << word << '\n';
  return 0;
}
