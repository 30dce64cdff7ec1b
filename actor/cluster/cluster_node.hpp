/// A node: one process of a cluster. It finds the other nodes, runs those members of each job that
/// are placed on it, and answers requests. All nodes are equal: a client may submit a job to any.
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

/// A job that this node can start: it was made from its settings, and its data were read.
class PreparedJob {
 public:
  PreparedJob() = default;
  virtual ~PreparedJob() = default;
  PreparedJob(const PreparedJob&) = delete;
  PreparedJob& operator=(const PreparedJob&) = delete;

  [[nodiscard]] virtual const JobOptions& options() const = 0;
  /// The number of ranges of the model.
  [[nodiscard]] virtual std::size_t ranges() const = 0;
  /// The number of updates in the checkpoint that the job resumes from; 0 if it resumes from none.
  [[nodiscard]] virtual std::uint64_t updates_in_checkpoint() const { return 0; }
  /// The sum of the steps at which the workers go on from this checkpoint; 0 without one.
  [[nodiscard]] virtual std::uint64_t steps_in_checkpoint() const { return 0; }
  /// Tells users what changes for the job because it resumes from a checkpoint; empty if nothing
  /// changes.
  [[nodiscard]] virtual std::string resume_note() const { return {}; }
  /// The number of steps of each worker in one pass over its data; 0 if the job has no data.
  [[nodiscard]] virtual core::Step steps_per_data_epoch() const { return 0; }
  /// Returns an Error if this machine does not have the memory for one node's part of the job, when
  /// the job runs on `nodes` nodes.
  [[nodiscard]] virtual Result<void> check_memory(std::size_t /*nodes*/) const { return {}; }
  /// Makes the initial parameter values that make_local_job() uses, which may take minutes for a
  /// large model. The node calls it once, before make_local_job(), on the thread that read the
  /// data.
  [[nodiscard]] virtual Result<void> make_initial_values() const { return {}; }
  /// Sets options().former_deals, updates_in_checkpoint() and steps_in_checkpoint() to those of the
  /// checkpoint from which the job went on. A node that joins a running job calls this before
  /// make_local_job(), because the file of that checkpoint may hold a later one by now. Returns an
  /// Error if the deals do not fit the data.
  [[nodiscard]] virtual Result<void> set_checkpoint_history(
      const std::vector<models::FormerDeal>& /*deals*/, std::uint64_t /*updates*/,
      std::uint64_t /*steps*/) const {
    return {};
  }
  /// A hash of the data and the checkpoint that this node has read, and of what follows from them,
  /// such as the model: two nodes may start one job together only if their fingerprints are equal.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
  /// A hash of the data alone: a node may join a running job only if its hash is that of the job's
  /// nodes. 0 if the job has no data.
  [[nodiscard]] virtual std::uint64_t data_fingerprint() const { return 0; }
  [[nodiscard]] virtual Result<std::unique_ptr<LocalJob>> make_local_job(
      LocalJobOptions options) const = 0;
  /// The job's model as text, as in the setting `model`; empty if the job has none. Settings may
  /// name no model; the node then chooses one.
  [[nodiscard]] virtual std::string model() const { return {}; }
  /// Returns what programs that follow the job need to know of its data and its model, as bytes
  /// that the node passes on unread. Empty if they need nothing.
  [[nodiscard]] virtual const std::string& notes() const;
  /// Returns an Error unless a range of the job's model can have the value of `state`.
  [[nodiscard]] virtual Result<void> check_range(const core::RangeState& state) const;
  /// Evaluates the model whose ranges `request` has, in the order of their ids. May take long: the
  /// node calls it on a thread of its own, while the job runs. Requires: check_range() has accepted
  /// each of the ranges().
  [[nodiscard]] virtual Result<wire::ModelMetrics> evaluate(
      const wire::EvaluateModel& request) const;
};

/// Makes a job from its settings and reads its data, which may take long. The node calls a copy of
/// this function on a new thread for each job. The thread may outlive the node, so the function may
/// not refer to the node. The thread has a ReadScope: when the node is destroyed, reads through an
/// InputDescriptor end early.
using JobPreparer =
    std::function<Result<std::shared_ptr<const PreparedJob>>(const wire::JobSettings& settings)>;

/// The most jobs and compute threads that a node accepts from all clients together, and from each
/// client. A client is identified by the name in its certificate or, without keys, by its host.
struct JobLimits {
  std::size_t jobs = 16;
  std::size_t jobs_per_client = 8;
  /// The compute threads of all jobs together.
  std::size_t threads = 128;
  std::size_t threads_per_client = 64;
};

struct ClusterOptions {
  security::EndpointOptions network;
  /// The addresses of the seed nodes, as wire::print writes them; empty for the first node of a
  /// cluster.
  std::vector<std::string> seeds;
  /// The node's name; may be empty. If two live nodes have the same name, the cluster refuses the
  /// second.
  std::string name;
  /// Appends the port that the node listens on to its name.
  bool appends_port_to_name = false;
  /// The number of workers that the node brings into each running job that it joins.
  std::uint32_t workers = 1;
  JobLimits limits = {};
  /// How long a job waits for its JobOptions::on_start, which may never return. The node to which
  /// the job was submitted waits 30 s for the start.
  std::chrono::milliseconds on_start_max = std::chrono::seconds{20};
  JobPreparer prepare_job;
  /// Called on one of the node's threads with new revocations of certificates. The callback must
  /// store them, because the node must have them in EndpointOptions::secrets when it starts again.
  std::function<void(const std::vector<security::Revocation>&)> on_revoked = {};
  /// Called with each log line, on the node's threads, one call at a time. The callback must not
  /// call the node, and must return soon. May be empty.
  std::function<void(const std::string&)> log;
};

/// Thread-safe. The destructor does not leave the cluster, so the other nodes take the node for
/// crashed; call leave() before.
class ClusterNode {
 public:
  /// Starts a node, or returns the reason why it cannot.
  static Result<std::unique_ptr<ClusterNode>> open(ClusterOptions options);
  ~ClusterNode();

  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  /// The node's address, as wire::print writes it.
  [[nodiscard]] const std::string& address() const;
  [[nodiscard]] wire::NodeId id() const;
  [[nodiscard]] wire::NodeStatus status();
  /// Replaces ClusterOptions::seeds: a seed node may have come back at another address.
  void set_seeds(std::vector<std::string> seeds);
  /// True if a client or another node, which the cluster admits, has asked this node to leave. The
  /// caller must then call leave().
  [[nodiscard]] bool is_asked_to_leave() const;
  /// Why the cluster refuses the node; empty if it does not. The caller must destroy a refused
  /// node.
  [[nodiscard]] std::string refusal() const;

  /// Hands over the ranges that the node's members own, and leaves the cluster. Returns after
  /// `timeout` at the latest; sooner if the node cannot hand over, for example because it is making
  /// a large model. Jobs may go on here until the node's destructor, which waits for steps that are
  /// being computed.
  void leave(std::chrono::milliseconds timeout);

  /// Asks the threads that read data to end, and prepares no job and evaluates no model from then
  /// on. Waits up to 500 ms for these threads, and then up to 500 ms for the evaluations. Returns
  /// the number of threads of both kinds that still run. They may run for ever, but use nothing of
  /// the node. A process with such threads must end by std::_Exit, which does not wait for them.
  std::size_t stop_readers();

 private:
  class Impl;
  explicit ClusterNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling::actor
