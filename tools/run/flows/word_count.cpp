#include "starling/tools/run/flows/word_count.hpp"

#include <algorithm>
#include <array>

#include "starling/tools/run/flows/top.hpp"

namespace starling::program {
namespace {

bool is_in_word(std::size_t byte, bool splits_at_spaces) {
  if (splits_at_spaces) return byte > ' ' && byte != 0x7f;
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte >= 0x80;
}

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

using Count = std::pair<std::string, std::uint64_t>;

/// Divides lines into words.
class WordSplitter {
 public:
  explicit WordSplitter(const WordCount& options) : ignores_case_(options.ignores_case) {
    for (std::size_t byte = 0; byte < is_letter_.size(); ++byte)
      is_letter_[byte] = is_in_word(byte, options.splits_at_spaces);
  }

  /// Returns each word of the line with the count 1.
  std::vector<Count> operator()(const std::string& line) const {
    std::vector<Count> words;
    words.reserve(line.size() / 4 + 1);
    const auto is_letter = [this](char c) { return is_letter_[static_cast<unsigned char>(c)]; };
    for (auto end = line.begin();;) {
      const auto begin = std::find_if(end, line.end(), is_letter);
      if (begin == line.end()) return words;
      end = std::find_if_not(begin, line.end(), is_letter);
      auto& word = words.emplace_back(std::string{begin, end}, 1).first;
      if (ignores_case_) std::ranges::transform(word, word.begin(), lower_case);
    }
  }

 private:
  bool ignores_case_;
  std::array<bool, 256> is_letter_{};
};

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
  const auto counts = lines->flat_map(WordSplitter{*this}).reduce_by_key(std::plus<>{});
  const auto order = [](const auto& count) { return std::pair{~count.second, count.first}; };
  return top_lines(context.engine(), counts, order, top);
}

}  // namespace starling::program
