/// The work as a job does it: a worker's local job and an owner's, each with an endpoint as a node
/// has.
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

/// Steps that read all of the model, compute nothing and push all of it.
class Steps final : public actor::Task {
 public:
  explicit Steps(const Load& load) : load_(load) {
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

  std::vector<core::RangeRows> plan(core::MemberId, core::Step step) override {
    const auto now = Clock::now();
    keep_up();
    if (step > warm_up(load_)) pushing += now - since_;
    if (step == warm_up(load_) + load_.rounds) done.set_value();
    std::vector<core::RangeRows> all(layout_.ranges.size());
    for (core::RangeId r = 0; r < all.size(); ++r) all[r].range = r;
    since_ = Clock::now();
    return all;
  }
  actor::StepResult compute(const actor::StepInput& input, core::Scratch&) override {
    const auto now = Clock::now();
    keep_up();
    if (input.step >= warm_up(load_)) pulling += now - since_;
    actor::StepResult result;
    result.update.samples = 1;
    for (core::RangeId r = 0; r < layout_.ranges.size(); ++r) {
      const core::Range& range = layout_.ranges[r];
      result.update.parts.push_back({r, {update_, range.offset, range.count, nullptr}});
    }
    since_ = Clock::now();
    return result;
  }

  std::promise<void> done;
  Clock::duration pushing{};
  Clock::duration pulling{};

 private:
  /// Nothing is computed, so the thread that would compute is no less urgent than all others.
  /// Without the right to that it stays so, and whatever else runs on the machine shows.
  static void keep_up() {
    thread_local const int kept = ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 0);
    (void)kept;
  }

  const Load load_;
  core::Layout layout_;
  std::shared_ptr<core::Buffer> update_;
  Clock::time_point since_;
};

struct JobSetup {
  Load load{};
  core::Applier<float> applier;
  std::string barrier = "asp";
  core::Step steps = 0;
  /// The workers and the owners; node 1 is the owner's process, node 2 the worker's.
  std::vector<core::Member> members;
  /// The owner's and the worker's, under CURVE.
  std::optional<std::array<security::NodeSecrets, 2>> secrets = std::nullopt;
};

/// The members of one of the two processes, running. Ends with the process.
class Side {
 public:
  Side(const JobSetup& setup, const Pipe& pipe, std::uint64_t node)
      : node_(node), task(std::make_shared<Steps>(setup.load)) {
    actor::Assignment<float> assignment;
    assignment.job.mode = core::Mode::hybrid;
    assignment.job.barrier = barrier::parse(setup.barrier).value();
    assignment.job.workers = static_cast<std::size_t>(
        std::ranges::count_if(setup.members, [](const auto& m) { return m.works; }));
    assignment.job.steps = setup.steps;
    assignment.job.copies = 1;
    assignment.task = task;
    assignment.applier = setup.applier;
    std::vector<float> start(task->layout().size, 0.0F);
    assignment.start = core::to_ranges<float>(task->layout(), start);
    actor::LocalJobOptions options;
    options.members_max = 16;
    options.send = [this](const std::vector<core::Envelope>& envelopes) {
      std::map<wire::TrafficClass, std::vector<wire::Frame>> parcels;
      for (const core::Envelope& envelope : envelopes) {
        wire::Frame frame = wire::encode(1, node_, envelope);
        const auto traffic_class = wire::traffic_class_of(frame);
        parcels[traffic_class].push_back(std::move(frame));
      }
      for (auto& [traffic_class, frames] : parcels) endpoint_->send(other_, traffic_class, frames);
    };
    local = actor::make_local_job<float>(std::move(assignment), std::move(options)).value();
    security::EndpointOptions network;
    if (setup.secrets) network.secrets = (*setup.secrets)[node - 1];
    network.utc_now = [] { return static_cast<security::UtcSeconds>(std::time(nullptr)); };
    endpoint_ = security::Endpoint::open(network, [this](const wire::FrameView& frame,
                                                         const security::Sender&) {
                  auto decoded = wire::decode_envelope(frame);
                  if (decoded) local->deliver(std::move(decoded->envelope), frame.at_once);
                }).value();
    pipe.put(endpoint_->address());
    other_ = pipe.get();
    std::vector<core::Member> here;
    for (const auto& member : setup.members)
      if (member.node == node) here.push_back(member);
    local->found(here, std::make_shared<const core::Configuration>(core::first_configuration(
                           setup.members, task->layout().ranges.size(), 1)));
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

 private:
  std::uint64_t node_;
  std::string other_;
  std::unique_ptr<security::Endpoint> endpoint_;

 public:
  std::shared_ptr<Steps> task;
  std::unique_ptr<actor::LocalJob> local;
};

}  // namespace starling::benchmarks
