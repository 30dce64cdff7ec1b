/// The base of tests with three nodes: processes on this machine.
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/program.hpp"
#include "tests/waiting.hpp"

namespace starling::program {

/// Waits until a node has logged the address at which it listens, and returns that; empty if it
/// does not log it in time.
inline std::string address_of(const Process& process, const std::string& name) {
  const std::string start = "node " + name + " at ";
  std::string address;
  (void)wait_until([&] {
    const std::string log = process.err();
    const auto from = log.find(start);
    const auto end = log.find('\n', from);
    if (from == std::string::npos || end == std::string::npos) return false;
    address = log.substr(from + start.size(), end - from - start.size());
    return true;
  });
  return address;
}

/// Three nodes, `a`, `b` and `c`, that have found each other.
class Nodes : public testing::Test {
 protected:
  void SetUp() override { start(); }

  void start() {
    for (const std::string name : {"a", "b", "c"}) {
      std::string line = "node --listen 127.0.0.1:*" + own_flags(name);
      if (!addresses_.empty()) line += " --join " + seed("a", addresses_.front());
      processes_.emplace_back(
          std::make_unique<Process>(folders_[processes_.size()], program(), words(line)));
      addresses_.push_back(address_of(*processes_.back(), name));
      ASSERT_FALSE(addresses_.back().empty());
    }
    ASSERT_TRUE(wait_until([&] { return status().find("c  tcp") != std::string::npos; }));
  }

  void TearDown() override {
    for (auto& process : processes_)
      if (process) process->signal(SIGKILL);
  }

  virtual const char* program() { return STARLING_PROGRAM; }
  /// Returns the flags that give a node its name.
  virtual std::string own_flags(const std::string& name) { return " --name " + name; }
  /// Returns how a seed node is written behind `--join`.
  virtual std::string seed(const std::string&, const std::string& address) { return address; }
  /// Returns the flags by which a command reaches a node.
  virtual std::string to(std::size_t node) { return " --to " + addresses_.at(node) + " "; }

  std::string status() { return run(work_, program(), words("status" + to(1))).out; }

  /// Returns the arguments that submit a job of three slow workers to `node`.
  std::vector<std::string> job_of_three(std::size_t node, const std::string& more) {
    return words("submit" + to(node) +
                 "--data digits:n=1000 --model softmax --workers 3 --delay exp:10ms " + more);
  }
  /// True once the workers of the first job have made 9 updates.
  bool is_training() {
    const auto seen =
        nlohmann::json::parse(run(work_, program(), words("status --json" + to(1))).out);
    return !seen["jobs"].empty() && seen["jobs"][0].value("updates", 0) >= 9;
  }

  Folder work_;
  std::array<Folder, 3> folders_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::string> addresses_;
};

}  // namespace starling::program
