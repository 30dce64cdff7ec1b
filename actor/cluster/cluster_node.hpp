/// A node: one process of a cluster. It finds the other nodes, holds members of the jobs that run
/// there, and answers requests. Any node accepts jobs; no node is special.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/security/endpoint.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::actor {

/// A job as this node would run it: made from its settings, with its data read.
class PreparedJob {
 public:
  PreparedJob() = default;
  virtual ~PreparedJob() = default;
  PreparedJob(const PreparedJob&) = delete;
  PreparedJob& operator=(const PreparedJob&) = delete;

  [[nodiscard]] virtual const JobOptions& options() const = 0;
  [[nodiscard]] virtual std::size_t ranges() const = 0;
  /// Steps of each worker in a pass over its data; 0 where it has none.
  [[nodiscard]] virtual core::Step steps_per_epoch() const { return 0; }
  /// An Error where this machine cannot hold one node's share of the job.
  [[nodiscard]] virtual Result<void> fits_one_of(std::size_t /*nodes*/) const { return {}; }
  /// Makes the values that make_local_job() starts from, which may take long. Called once, on the
  /// thread that read the data, and before make_local_job().
  [[nodiscard]] virtual Result<void> lay_out() const { return {}; }
  /// Equal on two nodes that would compute the same.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<LocalJob>> make_local_job(
      LocalJobOptions options) const = 0;
};

/// Prepares a job: reads its data. It may take long, and is called on a thread of its own, under a
/// ReadScope: reads through InputDescriptor end when the node does. A copy of it lives as long as
/// such a thread, which may be longer than the node.
using JobPreparer =
    std::function<Result<std::shared_ptr<const PreparedJob>>(const wire::JobSettings& settings)>;

/// The most that a node accepts from all clients together, and from one client. Its certificate's
/// name identifies a client or, where there are no keys, its host.
struct JobLimits {
  std::size_t jobs = 16;
  std::size_t jobs_per_client = 8;
  /// The compute threads of all jobs together.
  std::size_t threads = 128;
  std::size_t threads_per_client = 64;
};

struct ClusterOptions {
  security::EndpointOptions network;
  /// The addresses of its seed nodes, as wire::print gives them; empty for the first node of a
  /// cluster.
  std::vector<std::string> seeds;
  /// The node's own name: a node whose name another node has is refused. Empty: it has none.
  std::string name;
  /// Adds the port where it listens to the name.
  bool names_port = false;
  /// The number of workers with which it joins running jobs.
  std::uint32_t workers = 1;
  JobLimits limits = {};
  JobPreparer prepare_job;
  /// Called with new revocations, which the node must know when it starts again. Called on a thread
  /// of the node's.
  std::function<void(const std::vector<security::Revocation>&)> on_revoked = {};
  /// Called with each log line for people, on threads of the node's, one at a time: it must not
  /// call the node, nor wait for long. May be empty.
  std::function<void(const std::string&)> log;
};

/// Thread-safe. Its destructor does not leave the cluster: to others the node has crashed.
class ClusterNode {
 public:
  /// Starts a node; an Error says why it cannot.
  static Result<std::unique_ptr<ClusterNode>> open(ClusterOptions options);
  ~ClusterNode();

  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  /// The node's address, as wire::print gives it.
  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] wire::NodeId id() const;
  [[nodiscard]] wire::NodeStatus status();
  /// Whether a peer that may has asked the node to leave; its user calls leave() then.
  [[nodiscard]] bool is_asked_to_leave() const;
  /// Why the node cannot stay in its cluster, so that its user ends it; empty where it can.
  [[nodiscard]] std::string refusal() const;

  /// Hands over what its members own, leaves the cluster, and returns: after `timeout` at the
  /// latest, and sooner where it cannot hand over, as while a large model is laid out. Jobs may go
  /// on here until the node's destructor, which waits for steps that are being computed.
  void leave(std::chrono::milliseconds timeout);

  /// Ends all reading of data; no job is prepared afterwards. Returns the number of threads that
  /// still hang in a read 500 ms later: they run on, maybe without end, but touch nothing of the
  /// node. A process with such threads ends by std::_Exit, which does not wait for them.
  std::size_t end_readers();

 private:
  class Impl;
  explicit ClusterNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling::actor
