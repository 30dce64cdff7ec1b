/// Several hosts on one machine: network namespaces, each with its own address, joined by a router
/// that cuts any of them from any other, both ways or one way. For tests; one thread at a time.
///
/// The namespaces have no names: open files hold them, and they are gone with the test and the
/// programs in them, however these end. So tests that run at the same time do not meet.
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
  /// `count` hosts that reach each other, 1 to 250; an Error says what this machine lacks.
  static Result<std::unique_ptr<Hosts>> make(std::size_t count);
  ~Hosts();

  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return spaces_.size(); }
  [[nodiscard]] static std::string address(std::size_t host);

  /// Puts a program in a host.
  [[nodiscard]] program::Process::Prepare in(std::size_t host) const;
  /// Puts a program in the router, which reaches every host despite all partitions.
  [[nodiscard]] program::Process::Prepare in_router() const;

  /// Makes a one-way partition: packets from `from` to `to` are lost silently.
  void cut_one_way(std::size_t from, std::size_t to);
  void cut(std::size_t a, std::size_t b);
  void heal();

 private:
  Hosts() = default;
  [[nodiscard]] Result<void> join_all();
  /// Requires: `lines` are right; aborts else.
  void configure(int space, const std::string& lines);
  [[nodiscard]] Result<void> run_ip(int space, const std::string& lines);

  program::Folder folder_;
  int router_ = -1;
  /// One a host: open files.
  std::vector<int> spaces_;
  std::set<std::pair<std::size_t, std::size_t>> cuts_;
};

}  // namespace starling::hosts
