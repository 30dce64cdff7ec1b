/// A flow for the tests that applies every operation of data sets to random data, and compares what
/// it finds with loops over the same data.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/tools/registry/flow.hpp"

namespace starling::program {

/// A record with fields of all kinds.
struct Visit {
  std::string page;
  std::int32_t user = 0;
  std::optional<std::vector<double>> times;
  std::pair<std::uint8_t, std::array<std::int16_t, 2>> place{};

  auto operator<=>(const Visit&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.page, m.user, m.times, m.place); }
};

/// Applies the operations to the data of one seed. Not thread-safe.
class OperationCase {
 public:
  using Visits = std::vector<Visit>;
  template <class V>
  using ByPage = std::vector<std::pair<std::string, V>>;

  OperationCase(const flow::MapReduce& engine, std::uint64_t seed)
      : engine_(engine), random_(Random::stream(19, seed)) {
    left_ = draw(seed);
    right_ = draw(seed + 1);
    // Sets of the same data with few and with many parts, some of which are empty.
    parts_ = static_cast<flow::Part>(1 + random_.below(7));
  }

  /// Returns the names of the operations whose results differ, and the errors.
  [[nodiscard]] Result<std::vector<std::string>> differences() {
    narrow();
    by_key();
    joins();
    ordered();
    actions();
    if (error_) return *error_;
    return different_;
  }

 private:
  Visits draw(std::uint64_t seed) {
    constexpr std::uint64_t sizes[] = {0, 1, 7, 60, 200};
    const std::uint64_t size = sizes[(seed / 3) % 5];
    // One key, few, or all different.
    const std::uint64_t keys = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 1 + random_.below(9) : 1'000'000;
    Visits visits(size);
    for (Visit& visit : visits) {
      const std::uint64_t key = random_.below(keys);
      visit.page = (key % 2 == 0 ? "größe/" : key % 3 == 0 ? "" : "星椋鳥 ") + std::to_string(key);
      visit.user = static_cast<std::int32_t>(random_.below(20)) - 10;
      if (random_.below(3) > 0)
        visit.times = std::vector<double>(random_.below(4), static_cast<double>(key) / 2);
      visit.place = {static_cast<std::uint8_t>(random_.below(3)), {{1, -1}}};
    }
    return visits;
  }

  template <class T>
  void compare(const std::string& operation, const Result<T>& found, const T& expected) {
    if (!found)
      error_ = Error{found.error()}.within(operation);
    else if (*found != expected)
      different_.push_back(operation);
  }
  /// Compares records whose order is not defined.
  template <class T>
  void compare_sorted(const std::string& operation, Result<std::vector<T>> found,
                      std::vector<T> expected) {
    if (found) std::ranges::sort(*found);
    std::ranges::sort(expected);
    compare(operation, found, expected);
  }
  [[nodiscard]] auto set_of(const Visits& visits) const { return engine_.collection(visits); }
  static std::pair<std::string, std::int64_t> user_of(const Visit& visit) {
    return {visit.page, visit.user};
  }
  static std::vector<double> times_of(const Visit& visit) {
    return visit.times.value_or(std::vector<double>{});
  }
  static std::string page_of(const Visit& visit) { return visit.page; }
  static bool is_near(const Visit& visit) { return visit.user > 0; }

  void narrow() {
    const auto set = set_of(left_);
    ByPage<std::int64_t> users;
    std::vector<double> times;
    Visits near;
    ByPage<Visit> keyed;
    std::vector<std::pair<Visit, std::uint64_t>> indexed;
    for (const Visit& visit : left_) {
      users.push_back(user_of(visit));
      std::ranges::copy(times_of(visit), std::back_inserter(times));
      if (is_near(visit)) near.push_back(visit);
      keyed.emplace_back(visit.page, visit);
      indexed.emplace_back(visit, indexed.size());
    }
    compare("map", set.map(user_of).collect(), users);
    compare("flat_map", set.flat_map(times_of).collect(), times);
    compare("filter", set.filter(is_near).collect(), near);
    compare("key_by", set.key_by(page_of).collect(), keyed);
    compare("zip_with_index", set.zip_with_index().collect(), indexed);
    Visits both = left_;
    both.insert(both.end(), right_.begin(), right_.end());
    compare("union_with", set.union_with(set_of(right_)).collect(), both);
    const auto cached = set.filter(is_near).cache();
    compare("cache", cached.collect(), near);
    compare("cache again", cached.collect(), near);
    const auto sampled = set.sample(0.5, 3).collect();
    compare("sample again", set.sample(0.5, 3).collect(), sampled ? *sampled : Visits{});
    compare("sample of all", set.sample(1, 3).collect(), left_);
    if (sampled && !is_subsequence(*sampled, left_)) different_.emplace_back("sample");
  }

  static bool is_subsequence(const Visits& some, const Visits& all) {
    auto at = all.begin();
    for (const Visit& visit : some) {
      at = std::find(at, all.end(), visit);
      if (at++ == all.end()) return false;
    }
    return true;
  }

  void by_key() {
    const auto pairs = set_of(left_).map(user_of);
    std::map<std::string, std::int64_t> sums;
    std::map<std::string, std::vector<std::int64_t>> groups;
    for (const Visit& visit : left_) {
      sums[visit.page] += visit.user;
      groups[visit.page].push_back(visit.user);
    }
    compare_sorted("reduce_by_key", pairs.reduce_by_key(std::plus<>{}, parts_).collect(),
                   ByPage<std::int64_t>{sums.begin(), sums.end()});
    compare_sorted("group_by_key", pairs.group_by_key(parts_).collect(),
                   ByPage<std::vector<std::int64_t>>{groups.begin(), groups.end()});
    const std::set<Visit> different{left_.begin(), left_.end()};
    compare_sorted("distinct", set_of(left_).distinct(parts_).collect(),
                   Visits{different.begin(), different.end()});
    ByPage<std::int64_t> moved;
    for (flow::Part part = 0; part < parts_; ++part)
      for (const Visit& visit : left_)
        if (BySize{parts_}.part_of(visit.page) == part) moved.push_back(user_of(visit));
    compare("partition_by", pairs.partition_by(BySize{parts_}).collect(), moved);
  }

  struct BySize {
    flow::Part count;
    [[nodiscard]] flow::Part parts() const { return count; }
    [[nodiscard]] flow::Part part_of(const std::string& key) const {
      return static_cast<flow::Part>(key.size() % count);
    }
    [[nodiscard]] std::string print() const { return "size(" + std::to_string(count) + ")"; }
  };

  void joins() {
    using Number = std::int64_t;
    using Maybe = std::optional<Number>;
    const auto a = set_of(left_).map(user_of);
    const auto b = set_of(right_).map(user_of);
    std::map<std::string, std::pair<std::vector<Number>, std::vector<Number>>> groups;
    for (const Visit& visit : left_) groups[visit.page].first.push_back(visit.user);
    for (const Visit& visit : right_) groups[visit.page].second.push_back(visit.user);
    ByPage<std::pair<Number, Number>> inner;
    ByPage<std::pair<Number, Maybe>> lefts;
    ByPage<std::pair<Maybe, Maybe>> full;
    for (const auto& [page, sides] : groups) {
      const auto& [v, w] = sides;
      for (const Number x : v)
        for (const Number y : w) {
          inner.push_back({page, {x, y}});
          lefts.push_back({page, {x, y}});
          full.push_back({page, {x, y}});
        }
      for (const Number x : w.empty() ? v : std::vector<Number>{}) {
        lefts.push_back({page, {x, std::nullopt}});
        full.push_back({page, {x, std::nullopt}});
      }
      for (const Number y : v.empty() ? w : std::vector<Number>{})
        full.push_back({page, {std::nullopt, y}});
    }
    compare_sorted("join", a.join(b, parts_).collect(), inner);
    compare_sorted("left_join", a.left_join(b, parts_).collect(), lefts);
    compare_sorted("full_join", a.full_join(b, parts_).collect(), full);
    compare_sorted(
        "cogroup", a.cogroup(b, parts_).collect(),
        ByPage<std::pair<std::vector<Number>, std::vector<Number>>>{groups.begin(), groups.end()});
  }

  void ordered() {
    Visits sorted = left_;
    std::ranges::stable_sort(sorted, {}, &Visit::page);
    compare("sort_by", set_of(left_).sort_by(page_of, parts_).collect(), sorted);
    std::ranges::sort(sorted);
    compare("sort_by itself", set_of(left_).sort_by(std::identity{}, parts_).collect(), sorted);
    const auto next_user = [](Visit visit) { return ++visit.user, visit; };
    const auto rounds = set_of(left_).iterate(
        3, [&](const flow::Set<Visit>& set, std::uint32_t) { return set.map(next_user); });
    Visits later = left_;
    for (Visit& visit : later) visit.user += 3;
    if (!rounds)
      error_ = Error{rounds.error()}.within("iterate");
    else
      compare("iterate", rounds->collect(), later);
  }

  void actions() {
    const auto set = set_of(left_);
    compare("count", set.count(), std::uint64_t{left_.size()});
    const std::size_t first = std::min<std::size_t>(left_.size(), 5);
    compare("take", set.take(5),
            Visits{left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(first)});
    std::string pages;
    for (const Visit& visit : left_) pages += visit.page;
    const auto page = set.map(page_of);
    compare("reduce", page.reduce(std::plus<>{}),
            left_.empty() ? std::optional<std::string>{} : std::optional{pages});
    compare("fold", page.fold(std::string{}, std::plus<>{}, std::plus<>{}), pages);
  }

  const flow::MapReduce& engine_;
  Random random_;
  Visits left_;
  Visits right_;
  flow::Part parts_ = 1;
  std::optional<Error> error_;
  std::vector<std::string> different_;
};

/// Prints a line for each case in which an operation differs, and one with the number of cases.
struct Operations {
  static constexpr std::string_view name = "operations";
  static constexpr std::string_view summary = "compares operations with loops";
  std::uint64_t cases = 10;
  bool has_big_group = false;

  static std::vector<FlowOption> flow_options() {
    return {{"cases", "N", "seeds 1 to N [10]"},
            {"big-group", "", "also groups a million records of one key"}};
  }
  static Operations parse(SpecReader& options) {
    Operations parsed;
    parsed.cases = options.count("cases", parsed.cases);
    parsed.has_big_group = options.flag("big-group");
    return parsed;
  }
  [[nodiscard]] Result<flow::Set<std::string>> run(FlowContext& context) const {
    std::vector<std::string> lines;
    for (std::uint64_t seed = 1; seed <= cases; ++seed) {
      const auto found = OperationCase{context.engine(), seed}.differences();
      if (!found) return Error{found.error()}.within("case " + std::to_string(seed));
      for (const std::string& operation : *found)
        lines.push_back("case " + std::to_string(seed) + " differs: " + operation);
    }
    lines.push_back("compared " + std::to_string(cases) + " cases");
    if (has_big_group) {
      auto line = group_a_million(context.engine());
      if (!line) return std::move(line).error();
      lines.push_back(*std::move(line));
    }
    return flow::Set<std::string>{context.engine().collection(lines)};
  }

 private:
  /// Groups numbers of which a million have one key, and the last 1,000 another one each.
  static Result<std::string> group_a_million(const flow::MapReduce& engine) {
    constexpr std::uint64_t most = 1'000'000;
    const auto key_of = [](std::uint64_t i) { return i < most ? 0 : i; };
    const auto sizes = engine.generate(most + 1000, [](std::uint64_t i) { return i; })
                           .key_by(key_of)
                           .group_by_key()
                           .map([](const auto& group) {
                             const auto& values = group.second;
                             // The values are in the order of the set.
                             const bool is_right = std::ranges::is_sorted(values) &&
                                                   values.size() == (group.first == 0 ? most : 1);
                             return std::uint64_t{is_right ? 1U : 0U};
                           })
                           .reduce(std::plus<>{});
    if (!sizes) return sizes.error();
    return std::to_string(sizes->value_or(0)) + " groups";
  }
};

}  // namespace starling::program
