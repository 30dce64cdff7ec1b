/// Runs the nodes of one cluster, each a process, on hosts of their own or on this machine's
/// loopback, and a job on them. Reads their states by `starling status`. For tests; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/hosts/hosts.hpp"

namespace starling::hosts {

/// The status of one node, as `starling status` prints it.
struct StatusReport {
  /// By node name, including its own: alive, suspect, dead or left.
  std::map<std::string, std::string> states;
  /// The steps of the job's members on the node, by member.
  std::map<std::uint64_t, std::uint64_t> steps;
  /// The number of ranges that these members hold, in all.
  std::size_t held = 0;
  /// In the node's latest configuration, the number of owners of the range with the fewest; and the
  /// number of replicas on the node that are not complete yet.
  std::size_t copies = 0;
  std::size_t incomplete = 0;
  /// The member that is the coordinator, if the job has one.
  std::optional<std::uint64_t> coordinator;
  /// The configuration epoch; 0 if the node knows no job.
  std::uint64_t epoch = 0;
  std::string text;

  [[nodiscard]] std::size_t live() const;
};

/// Whether nodes have key files.
enum class Keys { none, given };

class Fleet {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::milliseconds;

  /// `program` is the path of `starling`. Without `hosts`, all nodes are on the loopback.
  explicit Fleet(std::string program, std::unique_ptr<Hosts> hosts = nullptr,
                 Keys keys = Keys::none);
  /// Kills all processes.
  ~Fleet();

  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// Starts a node, and returns its index; the names are n0, n1, ... `more` are further flags. If
  /// --listen is not among them, the node listens at a free port.
  std::size_t start(std::size_t host, const std::string& more = "");
  /// Returns the nodes that hold ranges.
  [[nodiscard]] std::vector<std::size_t> owners();
  /// Whether, as all nodes report, each range has at least `wanted` owners with complete replicas.
  [[nodiscard]] bool has_complete_replicas(std::size_t wanted);
  /// Waits until the running nodes know each other as alive, and no other node as live. Returns
  /// false after `within`.
  [[nodiscard]] bool agree(Time within);

  void kill(std::size_t node);
  void freeze(std::size_t node);
  void thaw(std::size_t node);
  /// Ends the node by SIGTERM, and returns its exit code.
  int leave(std::size_t node);

  [[nodiscard]] Hosts& hosts() { return *hosts_; }
  [[nodiscard]] const std::string& address(std::size_t node) const {
    return nodes_.at(node)->address;
  }
  /// Returns the flags by which a client reaches the node.
  [[nodiscard]] std::string access(std::size_t node) const;
  [[nodiscard]] std::size_t host_of(std::size_t node) const { return nodes_.at(node)->host; }
  [[nodiscard]] std::string log(std::size_t node) const { return nodes_.at(node)->process->err(); }
  /// Returns the logs and the status of all nodes, to show why a test failed.
  [[nodiscard]] std::string logs();
  [[nodiscard]] std::size_t rss_kib(std::size_t node) const;
  /// The processor time that the node has used.
  [[nodiscard]] std::chrono::duration<double> busy(std::size_t node) const;
  /// Returns the nodes that run and are not frozen.
  [[nodiscard]] std::vector<std::size_t> awake() const;
  /// Runs `starling status` for the node. Returns nullopt if that fails.
  [[nodiscard]] std::optional<StatusReport> ask(std::size_t node);

  /// Runs `starling` with the arguments `line`, to its end.
  program::Ran run(const std::string& line);
  /// Starts `starling submit --to NODE line`. Only one may run at a time.
  void submit(std::size_t node, const std::string& line);
  [[nodiscard]] bool is_training() { return submission_ && submission_->is_running(); }
  program::Ran finish() { return submission_->wait(); }
  [[nodiscard]] const program::Folder& work() const { return work_; }

  /// Reads the steps of all nodes again and again, until `holds()` is true or the job ends. Returns
  /// false after `within`.
  bool watch(Time within, const std::function<bool()>& holds);
  void watch(Time time) {
    (void)watch(time, [] { return false; });
  }
  /// Resets longest_pause().
  void reset_longest_pause();
  /// The longest time between two readings of the steps that showed new steps. It includes the time
  /// of the reading.
  [[nodiscard]] Time longest_pause() const { return longest_pause_; }
  /// The last known steps of all members of the job, present and former.
  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& steps() const { return steps_; }
  [[nodiscard]] std::uint64_t highest_step() const;

 private:
  struct Node {
    std::string name;
    std::size_t host = 0;
    std::string address;
    program::Folder folder;
    std::unique_ptr<program::Process> process;
    bool runs = true;
    bool frozen = false;
  };

  void read_steps();
  [[nodiscard]] program::Process::Prepare in_host(std::size_t host) const;
  [[nodiscard]] program::Process::Prepare enter_router() const;
  [[nodiscard]] std::string join_address(std::size_t node) const;
  [[nodiscard]] std::string key_path(const std::string& name) const;

  std::string program_;
  std::unique_ptr<Hosts> hosts_;
  Keys keys_;
  std::vector<std::unique_ptr<Node>> nodes_;
  program::Folder work_;
  std::unique_ptr<program::Process> submission_;
  std::map<std::uint64_t, std::uint64_t> steps_;
  Clock::time_point last_growth_at_ = Clock::now();
  Time longest_pause_{0};
};

}  // namespace starling::hosts
