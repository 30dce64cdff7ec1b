/// Three nodes as people run them: processes on this machine. For tests.
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/program.hpp"
#include "tests/waiting.hpp"

namespace starling::program {

/// Waits until a node says at which address it listens, and returns that; empty where it does not.
inline std::string address_of(const Process& process, const std::string& name) {
  const std::string start = "node " + name + " at ";
  std::string address;
  (void)wait_until([&] {
    const std::string said = process.err();
    const auto from = said.find(start);
    const auto end = said.find('\n', from);
    if (from == std::string::npos || end == std::string::npos) return false;
    address = said.substr(from + start.size(), end - from - start.size());
    return true;
  });
  return address;
}

/// Nodes that have found each other.
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
  /// Flags that give a node its name.
  virtual std::string own_flags(const std::string& name) { return " --name " + name; }
  virtual std::string seed(const std::string&, const std::string& address) { return address; }
  /// Flags that reach a node from outside.
  virtual std::string to(std::size_t node) { return " --to " + addresses_.at(node) + " "; }

  std::string status() { return run(work_, program(), words("status" + to(1))).out; }

  /// Returns the arguments that submit a job of three slow workers to `node`.
  std::vector<std::string> job_of_three(std::size_t node, const std::string& more) {
    return words("submit" + to(node) +
                 "--data digits:n=1000 --model softmax --workers 3 --delay exp:10ms " + more);
  }
  bool is_under_way() {
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
