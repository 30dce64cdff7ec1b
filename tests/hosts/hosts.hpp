/// Several hosts on one machine: network namespaces, each with its own address, joined by a router
/// that can partition any of them from any other, in both directions or in one. For tests; one
/// thread at a time.
///
/// The namespaces have no names: open files keep them alive, and they disappear with the test and
/// its programs, even if these crash. Tests that run at the same time do not reach each other's
/// hosts.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "tests/tools/program.hpp"

namespace starling::hosts {

class Hosts {
 public:
  /// Makes `count` hosts, 1 to 250, that reach each other. Returns an Error if this machine lacks
  /// something that is needed.
  static Result<std::unique_ptr<Hosts>> make(std::size_t count);
  ~Hosts();

  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return namespaces_.size(); }
  /// Returns the IPv4 address of a host.
  [[nodiscard]] static std::string address(std::size_t host);

  /// Returns a function that a program::Process calls in its child, to run the program on a host.
  [[nodiscard]] program::Process::Prepare in(std::size_t host) const;
  /// The same for the router, which reaches every host despite all partitions.
  [[nodiscard]] program::Process::Prepare in_router() const;

  /// Makes a one-way partition: packets from `from` to `to` are lost silently.
  void partition_one_way(std::size_t from, std::size_t to);
  /// Partitions two hosts in both directions.
  void cut(std::size_t a, std::size_t b);
  /// Ends all partitions.
  void heal();
  /// Limits what each host sends to `megabits_per_s`. Returns an Error if this machine lacks
  /// something that is needed. Call it once.
  [[nodiscard]] Result<void> limit_bandwidth(std::size_t megabits_per_s);

 private:
  Hosts() = default;
  /// Connects each host to the router, and sets its address and its default route.
  [[nodiscard]] Result<void> connect_to_router();
  /// Runs the `ip` commands in `lines`, one a line, in a namespace; aborts if one fails.
  void configure(int network_namespace, const std::string& lines);
  /// The same, but returns an Error.
  [[nodiscard]] Result<void> run_ip(int network_namespace, const std::string& lines);
  /// Runs the commands in `lines`, one a line, of `ip` or `tc` in a namespace.
  [[nodiscard]] Result<void> run_batch(const std::string& name, int network_namespace,
                                       const std::string& lines);

  program::Folder folder_;
  int router_ = -1;
  /// The namespace of each host, as an open file.
  std::vector<int> namespaces_;
  /// The directions (from, to) in which packets are lost.
  std::set<std::pair<std::size_t, std::size_t>> partitions_;
};

}  // namespace starling::hosts
