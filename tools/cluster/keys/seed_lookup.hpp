/// Looks up the hosts of `--join` again and again: a seed node, such as a container, may come back
/// at another address.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "starling/tools/cluster/keys/access.hpp"

namespace starling::program {

/// Not thread-safe. Its functions do not block.
class SeedLookup {
 public:
  /// Returns the addresses of the seed nodes that one setting `join` names.
  using Parse = std::function<Result<std::vector<std::string>>(const Setting& setting)>;

  /// `parse` is called on another thread, which may outlive this object.
  SeedLookup(Settings joins, Parse parse, std::chrono::milliseconds interval)
      : joins_(std::move(joins)),
        parse_(std::move(parse)),
        interval_(interval),
        found_(joins_.size()) {}

  /// Begins a lookup if `interval` has passed since the last one began. Returns the addresses of
  /// all seed nodes if a lookup has ended and the addresses have changed, and if each host has been
  /// found at least once. A host that cannot be looked up keeps its addresses.
  [[nodiscard]] std::optional<std::vector<std::string>> poll() {
    if (!running_.valid()) {
      begin_if_due();
      return std::nullopt;
    }
    if (running_.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
      return std::nullopt;
    Found found = running_.get();
    if (found == found_) return std::nullopt;
    found_ = std::move(found);
    std::vector<std::string> all;
    for (const auto& addresses : found_) {
      if (addresses.empty()) return std::nullopt;
      all.insert(all.end(), addresses.begin(), addresses.end());
    }
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// The addresses that each setting stands for.
  using Found = std::vector<std::vector<std::string>>;

  void begin_if_due() {
    if (joins_.empty() || Clock::now() < next_at_) return;
    next_at_ = Clock::now() + interval_;
    std::packaged_task<Found()> lookup{[joins = joins_, parse = parse_, found = found_]() mutable {
      for (std::size_t i = 0; i < joins.size(); ++i)
        if (auto addresses = parse(joins[i])) found[i] = *std::move(addresses);
      return std::move(found);
    }};
    auto running = lookup.get_future();
    try {
      // Detached, because a name server that does not answer must not delay the end of the node.
      std::thread{std::move(lookup)}.detach();
      running_ = std::move(running);
    } catch (const std::system_error&) {
      // The system has no thread: the next lookup tries again.
    }
  }

  const Settings joins_;
  const Parse parse_;
  const std::chrono::milliseconds interval_;
  Clock::time_point next_at_{};
  Found found_;
  std::future<Found> running_;
};

}  // namespace starling::program
