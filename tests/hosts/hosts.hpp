/// Several hosts on one machine: network namespaces, each with its own address, joined by a router
/// that can partition any of them from any other, in both directions or in one. For tests; one
/// thread at a time.
///
/// The namespaces have no names: open files keep them alive, and they disappear with the test and
/// its programs, however these end. Therefore tests that run at the same time do not meet.
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
  [[nodiscard]] static std::string address(std::size_t host);

  /// Returns what puts a program in a host.
  [[nodiscard]] program::Process::Prepare in(std::size_t host) const;
  /// Returns what puts a program in the router, which reaches every host despite all partitions.
  [[nodiscard]] program::Process::Prepare in_router() const;

  /// Makes a one-way partition: packets from `from` to `to` are lost silently.
  void cut_one_way(std::size_t from, std::size_t to);
  void cut(std::size_t a, std::size_t b);
  void heal();

 private:
  Hosts() = default;
  [[nodiscard]] Result<void> join_all();
  /// Runs the commands `lines` of `ip`; aborts if one fails.
  void configure(int network_namespace, const std::string& lines);
  [[nodiscard]] Result<void> run_ip(int network_namespace, const std::string& lines);

  program::Folder folder_;
  int router_ = -1;
  /// The namespace of each host, as an open file.
  std::vector<int> namespaces_;
  std::set<std::pair<std::size_t, std::size_t>> cuts_;
};

}  // namespace starling::hosts
