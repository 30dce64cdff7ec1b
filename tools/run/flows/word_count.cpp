#include "starling/tools/run/flows/word_count.hpp"

#include "starling/tools/run/flows/top.hpp"

namespace starling::program {
namespace {

bool is_in_word(char c, bool splits_at_spaces) {
  const auto byte = static_cast<unsigned char>(c);
  if (splits_at_spaces) return byte > ' ' && byte != 0x7f;
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte >= 0x80;
}

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::vector<std::string> words_of_line(const std::string& line, const WordCount& options) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const char c : line) {
    if (is_in_word(c, options.splits_at_spaces))
      word += options.ignores_case ? lower_case(c) : c;
    else
      end_word();
  }
  end_word();
  return words;
}

}  // namespace

std::vector<FlowOption> WordCount::flow_options() {
  return {{"top", "N", "only the N most frequent words [all]"},
          {"ignore-case", "", "count ASCII letters of either case as one"},
          {"spaces", "", "words end only at white space, so punctuation belongs to them"}};
}

WordCount WordCount::parse(SpecReader& options) {
  return {.top = options.count("top", 0, 1, top_max),
          .ignores_case = options.flag("ignore-case"),
          .splits_at_spaces = options.flag("spaces")};
}

Result<flow::Set<std::string>> WordCount::run(FlowContext& context) const {
  const auto lines = context.text();
  if (!lines) return lines.error();
  const auto counts = lines
                          ->flat_map([options = *this](const std::string& line) {
                            return words_of_line(line, options);
                          })
                          .map([](const std::string& word) {
                            return std::pair{word, std::uint64_t{1}};
                          })
                          .reduce_by_key(std::plus<>{});
  const auto order = [](const auto& count) { return std::pair{~count.second, count.first}; };
  return top_lines(context.engine(), counts, order, top);
}

}  // namespace starling::program
