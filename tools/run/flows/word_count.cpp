#include "starling/tools/run/flows/word_count.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/tools/run/flows/top.hpp"

namespace starling::program {
namespace {

bool is_in_word(std::size_t byte, bool splits_at_spaces) {
  if (splits_at_spaces) return byte > ' ' && byte != 0x7f;
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte >= 0x80;
}

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// By byte: true if the byte belongs to words.
using WordBytes = std::array<bool, 256>;

/// Each word of a line with the count 1, one after another. A word is valid until the iterator
/// moves on. Requires: line and word_bytes outlive the range.
class WordsOfLine {
 public:
  WordsOfLine(std::string_view line, const WordBytes& word_bytes, bool ignores_case)
      : line_(line), word_bytes_(&word_bytes), ignores_case_(ignores_case) {}

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = std::pair<std::string_view, std::uint64_t>;

    Iterator() = default;
    explicit Iterator(const WordsOfLine& words) : words_(&words) { ++*this; }

    value_type operator*() const {
      if (words_->ignores_case_) return {lower_case_, 1};
      return {words_->line_.substr(begin_, end_ - begin_), 1};
    }
    Iterator& operator++() {
      for (begin_ = end_; begin_ < words_->line_.size() && !is_in_word(begin_);) ++begin_;
      for (end_ = begin_; end_ < words_->line_.size() && is_in_word(end_);) ++end_;
      if (words_->ignores_case_) {
        lower_case_.assign(words_->line_, begin_, end_ - begin_);
        std::ranges::transform(lower_case_, lower_case_.begin(), lower_case);
      }
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return begin_ == words_->line_.size(); }

   private:
    [[nodiscard]] bool is_in_word(std::size_t i) const {
      return (*words_->word_bytes_)[static_cast<unsigned char>(words_->line_[i])];
    }

    const WordsOfLine* words_ = nullptr;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    /// The word, if the case of letters is ignored.
    std::string lower_case_;
  };

  [[nodiscard]] Iterator begin() const { return Iterator{*this}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  std::string_view line_;
  const WordBytes* word_bytes_;
  bool ignores_case_;
};

/// Divides lines into words.
class WordSplitter {
 public:
  explicit WordSplitter(const WordCount& options) : ignores_case_(options.ignores_case) {
    for (std::size_t byte = 0; byte < word_bytes_.size(); ++byte)
      word_bytes_[byte] = is_in_word(byte, options.splits_at_spaces);
  }
  WordsOfLine operator()(const std::string& line) const {
    return {line, word_bytes_, ignores_case_};
  }

 private:
  bool ignores_case_;
  WordBytes word_bytes_{};
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
