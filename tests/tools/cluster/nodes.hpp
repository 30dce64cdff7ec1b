/// The fixture of tests with three nodes, which are processes on this machine.
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/program.hpp"
#include "tests/waiting.hpp"

namespace starling::program {

/// Waits until node `name` has logged the address at which it listens. Returns the address, or an
/// empty text after a timeout.
inline std::string address_of(const Process& process, const std::string& name) {
  const std::string prefix = "node " + name + " at ";
  std::string address;
  (void)wait_until([&] {
    const std::string log = process.err();
    const auto from = log.find(prefix);
    const auto end = log.find('\n', from);
    if (from == std::string::npos || end == std::string::npos) return false;
    address = log.substr(from + prefix.size(), end - from - prefix.size());
    return true;
  });
  return address;
}

/// Three nodes, `a`, `b` and `c`, numbered 0 to 2, that have joined one cluster. `work_` is the
/// folder of the commands; each node runs in a folder of its own.
class Nodes : public testing::Test {
 protected:
  void SetUp() override { start(); }

  /// Starts the nodes, and waits until `b` knows `c`.
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

  /// Returns the program that the nodes run.
  virtual const char* program() { return STARLING_PROGRAM; }
  /// Returns the flags of node `name` alone, which give the node its name.
  virtual std::string own_flags(const std::string& name) { return " --name " + name; }
  /// Returns the text that names the seed node with this name and address behind `--join`.
  virtual std::string seed(const std::string&, const std::string& address) { return address; }
  /// Returns the flags by which a command reaches node number `node`, between spaces.
  virtual std::string to(std::size_t node) { return " --to " + addresses_.at(node) + " "; }

  /// Returns what `starling status` prints about the nodes and their jobs.
  std::string status() { return run(work_, program(), words("status" + to(1))).out; }

  /// Returns the arguments that submit a job of three slow workers to node number `node`, with
  /// `more_flags`.
  std::vector<std::string> job_of_three(std::size_t node, const std::string& more_flags) {
    return words("submit" + to(node) +
                 "--data digits:n=1000 --model softmax --workers 3 --delay exp:10ms " + more_flags);
  }
  /// Returns the first job as `starling status` prints it; an empty object without a job, and if
  /// the node does not answer in time.
  nlohmann::json first_job() {
    const auto status_json = nlohmann::json::parse(
        run(work_, program(), words("status --json" + to(1))).out, nullptr, false);
    if (status_json.is_discarded() || status_json["jobs"].empty()) return nlohmann::json::object();
    return status_json["jobs"][0];
  }
  /// True once the workers of the first job have made 9 updates.
  bool is_training() { return first_job().value("updates", 0) >= 9; }

  /// Returns the members of the first job; none without a job.
  nlohmann::json members() { return first_job().value("members", nlohmann::json::array()); }

  Folder work_;
  std::array<Folder, 3> folders_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::string> addresses_;
};

}  // namespace starling::program
