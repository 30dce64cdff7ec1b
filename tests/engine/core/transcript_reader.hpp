/// Parses the lines of transcripts into words, messages and options.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::core {

/// A line of a transcript that cannot be read; the message says why.
struct UnreadableLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the value of `result`, or throws its error as UnreadableLine.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw UnreadableLine{result.error().message};
  return std::move(*result);
}

/// A Shard that is the only owner of its ranges: what Replica does for several owners.
class OwnerWithoutReplicas {
 public:
  OwnerWithoutReplicas(const ShardOptions& options, const std::vector<RangeState>& states)
      : is_bsp_(options.bsp), range_count_(states.size()), shard_(options) {
    for (const RangeState& state : states) shard_.put_range(state);
  }

  void on(const Context& context, const Pull& pull) { shard_.on(context, pull); }
  void on(const Context& context, const Push& push) { shard_.on(context, push); }
  void on(const Context& context, const Snapshot& request) { shard_.on(context, request); }
  void on(const Context& context, const Ended& ended) {
    for (RangeId r = 0; r < range_count_; ++r) (void)shard_.end_worker(context, r, ended.worker);
  }
  void remove_worker(const Context& context, MemberId left) {
    for (RangeId r = 0; is_bsp_ && r < range_count_; ++r)
      shard_.await_only(context, r, [left](MemberId id, Incarnation) { return id != left; });
  }

 private:
  bool is_bsp_;
  std::size_t range_count_;
  Shard shard_;
};

/// The words of a line that were not read yet: `word key=value key=value flag`. Each function that
/// reads a word removes it, and throws UnreadableLine if the word is missing or invalid.
class Words {
 public:
  explicit Words(std::string_view line) {
    std::istringstream stream{std::string{line}};
    for (std::string word; stream >> word;) words_.push_back(word);
  }

  /// Returns the first word.
  std::string next() {
    if (words_.empty()) throw UnreadableLine{"a word is missing"};
    std::string first = words_.front();
    words_.erase(words_.begin());
    return first;
  }
  /// Returns true if there is a word `name`.
  bool flag(std::string_view name) { return std::erase(words_, name) > 0; }
  bool has(std::string_view key) const {
    return std::ranges::any_of(words_, [&](const std::string& w) { return is(w, key); });
  }
  std::string text(std::string_view key, std::string default_value) {
    const auto at = std::ranges::find_if(words_, [&](const auto& w) { return is(w, key); });
    if (at == words_.end()) return default_value;
    std::string value = at->substr(key.size() + 1);
    words_.erase(at);
    return value;
  }
  std::uint64_t count(std::string_view key) {
    if (!has(key)) throw UnreadableLine{std::string{key} + "= is missing"};
    return count(key, 0);
  }
  std::uint64_t count(std::string_view key, std::uint64_t default_value) {
    const std::string value = text(key, std::to_string(default_value));
    return value == "finished" ? barrier::finished : value_or_throw(parse_count(value));
  }
  std::uint32_t id(std::string_view key) { return static_cast<std::uint32_t>(count(key)); }
  /// Reads `key=1,2.5,3`. `key=none` and a missing key give an empty list.
  std::vector<double> list(std::string_view key) {
    std::vector<double> numbers;
    const std::string value = text(key, "none");
    if (value == "none") return numbers;
    for (const auto part : split(value, ',')) numbers.push_back(value_or_throw(parse_number(part)));
    return numbers;
  }
  template <class N>
  std::vector<N> ids(std::string_view key) {
    std::vector<N> numbers;
    for (const double number : list(key)) numbers.push_back(static_cast<N>(number));
    return numbers;
  }
  Rows rows() {
    if (!has("rows")) return nullptr;
    return std::make_shared<const std::vector<std::uint32_t>>(ids<std::uint32_t>("rows"));
  }
  Slice slice(std::string_view key) {
    const auto numbers = list(key);
    if (numbers.empty()) return {};
    auto buffer = Buffer::make<float>(numbers.size());
    std::ranges::transform(numbers, buffer->as<float>().begin(),
                           [](double number) { return static_cast<float>(number); });
    return {std::move(buffer), 0, numbers.size(), rows()};
  }
  /// Throws UnreadableLine if any word was not read.
  void expect_end() const {
    if (!words_.empty()) throw UnreadableLine{"'" + words_.front() + "' is not understood"};
  }

 private:
  static bool is(const std::string& word, std::string_view key) {
    return word.starts_with(key) && word.size() > key.size() && word[key.size()] == '=';
  }

  std::vector<std::string> words_;
};

// Each of these functions reads a message or options from the words, and throws UnreadableLine if a
// word is missing or invalid.
[[nodiscard]] Message read_message(Words& words);
[[nodiscard]] WorkerStatus read_status(Words& words);
[[nodiscard]] barrier::Barrier read_barrier(Words& words);
[[nodiscard]] barrier::Recheck read_recheck(Words& words, const barrier::Recheck& default_value);
[[nodiscard]] WorkerOptions read_worker(Words& words);

/// Reads the options of a shard, and makes it. `ranges=3,2x4` stands for a dense parameter of 3
/// elements and a row-sparse one of 2 rows of 4 elements. Each parameter is one range, and all
/// elements are 0.
[[nodiscard]] OwnerWithoutReplicas read_shard(Words& words);

}  // namespace starling::core
