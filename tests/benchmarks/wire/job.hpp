/// Transfers the load with Starling. Two processes run parts of one job, one with the worker and
/// one with the owner. An endpoint, as a node has one, connects each process to the other.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/security/endpoint.hpp"
#include "tests/benchmarks/wire/pair.hpp"

namespace starling::benchmarks {

/// A task whose steps pull the whole model, compute nothing and push the whole model.
class TransferTask final : public actor::Task {
 public:
  explicit TransferTask(const Load& load) : load_(load) {
    const std::size_t count = load.chunk_bytes / sizeof(float);
    for (std::size_t r = 0; r < load.messages(); ++r) {
      layout_.parameters.push_back({.name = std::to_string(r), .shape = {count}});
      layout_.offsets.push_back(r * count);
      layout_.ranges.push_back({r * count, count, 0, {{r, 0, 0, count}}});
    }
    layout_.size = load.messages() * count;
    update_ = core::Buffer::make<float>(layout_.size);
    std::ranges::fill(update_->as<float>(), 1.0F);
  }

  [[nodiscard]] const core::Layout& layout() const override { return layout_; }
  [[nodiscard]] bool chooses_reads() const override { return true; }

  std::vector<core::RangeRows> plan(const actor::StepInput& input) override {
    const auto now = Clock::now();
    raise_priority();
    const core::Step end = warm_up(load_) + load_.rounds;
    if (input.step > warm_up(load_) && input.step <= end) push_time += now - transfer_started_at_;
    if (input.step == end) done.set_value();
    std::vector<core::RangeRows> reads(layout_.ranges.size());
    for (core::RangeId r = 0; r < reads.size(); ++r) reads[r].range = r;
    transfer_started_at_ = Clock::now();
    return reads;
  }
  actor::StepResult compute(const actor::StepInput& input, core::Scratch&) override {
    const auto now = Clock::now();
    raise_priority();
    if (input.step >= warm_up(load_) && input.step < warm_up(load_) + load_.rounds)
      pull_time += now - transfer_started_at_;
    actor::StepResult result;
    result.update.samples = 1;
    for (core::RangeId r = 0; r < layout_.ranges.size(); ++r) {
      const core::Range& range = layout_.ranges[r];
      result.update.parts.push_back({r, {update_, range.offset, range.count, nullptr}});
    }
    transfer_started_at_ = Clock::now();
    return result;
  }

  /// Set after the last measured step.
  std::promise<void> done;
  /// The sums of the times of all pushes and of all pulls after the warm-up.
  Clock::duration push_time{};
  Clock::duration pull_time{};

 private:
  /// Gives the compute thread normal priority, because it only transfers here. Without the
  /// permission for this, the thread keeps its low priority, and other programs disturb the
  /// measurement.
  static void raise_priority() {
    thread_local const int result = ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 0);
    (void)result;
  }

  const Load load_;
  core::Layout layout_;
  std::shared_ptr<core::Buffer> update_;
  /// When the current push or pull began.
  Clock::time_point transfer_started_at_;
};

/// The setup of a job, equal in both processes.
struct JobSetup {
  Load load{};
  core::ApplierPtr applier;
  std::string barrier = "asp";
  core::Step steps = 0;
  /// The workers and the owners. Node 1 is the owner's process, node 2 the worker's.
  std::vector<core::Member> members;
  /// The owner's and the worker's secrets; nullopt for a plain connection.
  std::optional<std::array<security::NodeSecrets, 2>> secrets = std::nullopt;
};

/// One process's part of the job, which runs until the process ends. The constructor exchanges the
/// addresses over `pipe` and starts the members of `node`.
class JobProcess {
 public:
  JobProcess(const JobSetup& setup, const Pipe& pipe, std::uint64_t node)
      : node_(node), task(std::make_shared<TransferTask>(setup.load)) {
    actor::Assignment assignment;
    assignment.job.mode = core::Mode::hybrid;
    assignment.job.barrier = barrier::parse(setup.barrier).value();
    assignment.job.workers = static_cast<std::size_t>(
        std::ranges::count_if(setup.members, [](const auto& m) { return m.works; }));
    assignment.job.steps = setup.steps;
    assignment.job.replication_factor = 1;
    assignment.task = task;
    assignment.applier = setup.applier;
    std::vector<float> start(task->layout().size, 0.0F);
    assignment.initial_states = core::to_ranges<float>(task->layout(), start);
    actor::LocalJobOptions options;
    options.send = [this](const std::vector<core::Envelope>& envelopes) {
      std::map<wire::TrafficClass, std::vector<wire::Frame>> frames_by_class;
      for (const core::Envelope& envelope : envelopes) {
        wire::Frame frame = wire::encode(1, node_, envelope);
        const auto traffic_class = wire::traffic_class_of(frame);
        frames_by_class[traffic_class].push_back(std::move(frame));
      }
      for (auto& [traffic_class, frames] : frames_by_class)
        endpoint_->send(other_address_, traffic_class, frames);
    };
    local = actor::make_local_job(std::move(assignment), std::move(options)).value();
    security::EndpointOptions network;
    if (setup.secrets) network.secrets = (*setup.secrets)[node - 1];
    network.utc_now = [] { return static_cast<security::UtcSeconds>(std::time(nullptr)); };
    endpoint_ = security::Endpoint::open(network, [this](const wire::FrameView& frame,
                                                         const security::Sender&) {
                  auto decoded = wire::decode_envelope(frame);
                  if (decoded)
                    local->deliver(std::move(decoded->envelope), frame.may_handle_inline);
                }).value();
    pipe.send(endpoint_->address());
    other_address_ = pipe.receive();
    std::vector<core::Member> own_members;
    for (const auto& member : setup.members)
      if (member.node == node) own_members.push_back(member);
    local->add_initial_members(
        own_members, std::make_shared<const core::Configuration>(core::first_configuration(
                         setup.members, task->layout().ranges.size(), 1)));
    local->start_members();
  }
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;

 private:
  std::uint64_t node_;
  std::string other_address_;
  std::unique_ptr<security::Endpoint> endpoint_;

 public:
  std::shared_ptr<TransferTask> task;
  std::unique_ptr<actor::LocalJob> local;
};

}  // namespace starling::benchmarks
