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
#include "starling/engine/exchange/ownership/range_client.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"
#include "tests/engine/core/print.hpp"

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
  OwnerWithoutReplicas(const ExchangeOptions& options, const std::vector<RangeState>& states)
      : is_bsp_(options.bsp),
        workers_(options.workers),
        range_count_(states.size()),
        shard_(options) {
    for (const RangeState& state : states) shard_.put_range({state});
  }

  void on(const OwnershipContext& context, const Pull& pull) { shard_.on(context, pull); }
  void on(const OwnershipContext& context, const Push& push) {
    if (shard_.accept(context, push, workers_) != PushResult::refused)
      context.send(push.worker, Ack{push.range, push.step, push.incarnation, push.owner_epoch});
  }
  void on(const OwnershipContext& context, const Snapshot& request) { shard_.on(context, request); }
  void on(const OwnershipContext& context, const Ended& ended) {
    for (RangeId r = 0; r < range_count_; ++r)
      (void)shard_.on_worker_ended(context, r, ended.worker);
  }
  void remove_worker(const OwnershipContext& context, MemberId left) {
    for (RangeId r = 0; is_bsp_ && r < range_count_; ++r)
      shard_.await_only(context, r, [left](MemberId id, Incarnation) { return id != left; });
  }

 private:
  bool is_bsp_;
  std::size_t workers_;
  std::size_t range_count_;
  Shard shard_;
};

/// Effects, each as a line of text.
using Lines = std::vector<std::string>;

/// A worker and its part of the ownership exchange, as MemberCore runs them.
class WorkerWithOwners {
 public:
  /// `owner_of` has the owner of each range. Owners never change.
  WorkerWithOwners(const WorkerOptions& options, const std::vector<OwnerId>& owner_of,
                   std::size_t window)
      : worker_(options),
        client_({.worker = options.id,
                 .incarnation = options.incarnation,
                 .bsp = options.bsp,
                 .window = window}) {
    Configuration configuration;
    for (const OwnerId owner : owner_of) configuration.ranges.push_back({0, {{.id = owner}}});
    configuration_ = std::make_shared<const Configuration>(std::move(configuration));
  }

  struct At {
    Time now;
    Random& random;
  };
  /// Gives the client its configuration. Call it first.
  void adopt(const At& at, Lines& lines);
  void receive(const At& at, Lines& lines, const TranscriptMessage& message);
  void remove_worker(const At& at, Lines& lines, MemberId left);
  /// Calls `event(worker, context)`, and appends the effects to `lines`.
  template <class Event>
  void run_worker(const At& at, Lines& lines, Event event) {
    Effects effects;
    event(worker_, Context{at.now, at.random, effects});
    for (Effect& effect : effects) execute(at, lines, effect);
  }

 private:
  template <class Event>
  void run_client(const At& at, Lines& lines, Event event) {
    ExchangeEffects<OwnershipContext::Messages> effects;
    event(client_, OwnershipContext{at.now, at.random, effects});
    for (OwnershipEffect& effect : effects) execute(at, lines, effect);
  }
  void execute(const At& at, Lines& lines, Effect& effect);
  void execute(const At& at, Lines& lines, OwnershipEffect& effect);

  Worker worker_;
  RangeClient client_;
  ConfigurationPtr configuration_;
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
  std::uint64_t nanoseconds(std::string_view key) {
    return static_cast<std::uint64_t>(value_or_throw(parse_duration(text(key, "0s"))).count());
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
[[nodiscard]] TranscriptMessage read_message(Words& words);
[[nodiscard]] WorkerStatus read_status(Words& words);
[[nodiscard]] barrier::Barrier read_barrier(Words& words);
[[nodiscard]] barrier::Recheck read_recheck(Words& words, const barrier::Recheck& default_value);
[[nodiscard]] WorkerWithOwners read_worker(Words& words);

/// Reads the options of a shard, and makes it. `ranges=3,2x4` stands for a dense parameter of 3
/// elements and a row-sparse one of 2 rows of 4 elements. Each parameter is one range, and all
/// elements are 0.
[[nodiscard]] OwnerWithoutReplicas read_shard(Words& words);

}  // namespace starling::core
