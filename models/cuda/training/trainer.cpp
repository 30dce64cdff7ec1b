#include "starling/models/cuda/training/trainer.hpp"

#include <array>

#include "starling/base/check.hpp"
#include "starling/models/cuda/catch_errors.hpp"
#include "starling/models/cuda/graphs.hpp"
#include "starling/models/cuda/net_run.hpp"
#include "starling/models/cuda/probe.hpp"
#include "starling/models/cuda/staging.hpp"
#include "starling/models/cuda/training/device_update.hpp"

namespace starling::models::cuda {
namespace {

/// The memory of one step's batch and update. A Trainer uses two of them in turn, so that the next
/// batch is copied while the current step runs.
struct StepBuffers {
  StepBuffers(const Net<float>& net, std::size_t ids_in_row) : staging(net, ids_in_row) {}

  Staging staging;
  PinnedArray<StagedUpdate> host_update{1};
  DeviceArray<StagedUpdate> device_update{1};
  /// Occurs when the batch and the update are on the device.
  Event copied;
  /// Occurs when the step is done. These buffers may then be overwritten.
  Event done;
  /// Graphs of steps that use these buffers.
  GraphCache graphs;
};

}  // namespace

struct Trainer::State {
  State(const Net<float>& net, std::size_t device, const TrainerOptions& trainer_options)
      : index(device),
        options(trainer_options),
        context(trainer_options.precision),
        run(net),
        update(trainer_options.optimizer, trainer_options.clip, net.parameters()),
        w(total_size(net.parameters())),
        g(w.size()),
        step_buffers{StepBuffers{net, run.ids_in_row()}, StepBuffers{net, run.ids_in_row()}} {}

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// Waits for work in flight, so that the work does not use memory that is already freed.
  ~State() {
    use_device_to_free(index);
    wait_for_streams();
  }

  std::size_t index;
  TrainerOptions options;
  Context context;
  /// The stream of copies to the device.
  Stream copies;
  NetRun run;
  DeviceUpdate update;
  DeviceArray<float> w;
  DeviceArray<float> g;
  std::array<StepBuffers, 2> step_buffers;
  std::size_t current_index = 0;
  /// The number of calls of step() so far.
  std::uint64_t steps = 0;
  std::size_t rows_max = 0;
  /// True if the last step succeeded, so that repeat() may run it again.
  bool can_repeat = false;

  StepBuffers& current() { return step_buffers[current_index]; }

  /// Waits for all work in the streams, even if some of it failed.
  void wait_for_streams() const noexcept {
    static_cast<void>(cudaStreamSynchronize(copies.get()));
    static_cast<void>(cudaStreamSynchronize(context.stream().get()));
  }

  /// Starts the copy of the next update to the device, and makes the step wait for all copies.
  void upload_update(StepBuffers& buffers, double rate_scale) {
    *buffers.host_update.data() =
        stage(options.optimizer, {.rate_scale = rate_scale, .l2 = options.l2, .t = ++steps});
    check(cudaMemcpyAsync(buffers.device_update.data(), buffers.host_update.data(),
                          buffers.device_update.bytes(), cudaMemcpyHostToDevice, copies.get()),
          "copying an update");
    buffers.copied.record(copies);
    buffers.copied.delay(context.stream());
  }

  /// Puts the step into the context's stream, as a graph if one is recorded.
  void launch(StepBuffers& buffers) {
    buffers.graphs.run(context, buffers.staging.rows(), [&] { run_step(buffers); });
    buffers.done.record(context.stream());
  }

  /// Puts the work of the step into the context's stream.
  void run_step(StepBuffers& buffers) {
    const std::size_t rows = buffers.staging.rows();
    const NetInput input = buffers.staging.input();
    const float weight = 1 / static_cast<float>(rows);
    check(cudaMemsetAsync(g.data(), 0, g.bytes(), context.stream().get()), "clearing a gradient");
    run.forward(context, w.data(), input, rows, true, 0);
    run.loss(context, input, rows, weight);
    run.backward(context, w.data(), input, rows, weight, 0, g.data());
    update.apply(context, buffers.device_update.data(), g.data(), w.data());
  }

  /// Prepares steps with `rows` rows. The first call, in make(), is for the largest batch and
  /// allocates the memory; later calls choose algorithms for other batch sizes.
  void reserve(std::size_t rows) {
    bool has_moved = run.reserve(rows, context);
    for (StepBuffers& buffers : step_buffers)
      has_moved = buffers.staging.reserve(rows) || has_moved;
    if (has_moved) clear_graphs();
  }

  void clear_graphs() {
    for (StepBuffers& buffers : step_buffers) buffers.graphs.clear();
  }
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::make(const Net<float>& net, std::size_t index, std::size_t rows,
                              std::span<const float> w, const TrainerOptions& options) {
  if (auto valid = probe(index); !valid) return std::move(valid).error();
  if (const std::string reason = unsupported_reason(net); !reason.empty())
    return Error{device_name(index) + ": " + reason};
  return catch_errors(index, [&]() -> Result<Trainer> {
    use_device(index);
    auto state = std::make_unique<State>(net, index, options);
    STARLING_CHECK(w.size() == state->w.size());
    if (rows == 0 || rows > state->run.rows_max())
      return Error{device_name(index) + ": batches of " + std::to_string(rows) +
                   " rows; valid for this net: 1 to " + std::to_string(state->run.rows_max())};
    state->rows_max = rows;
    state->reserve(rows);
    const auto stream = state->context.stream().get();
    check(
        cudaMemcpyAsync(state->w.data(), w.data(), w.size_bytes(), cudaMemcpyHostToDevice, stream),
        "copying parameters");
    state->run.clear_accumulated(state->context);
    state->context.stream().finish();
    return Trainer{std::move(state)};
  });
}

Result<void> Trainer::step(const Table& data, Batch batch, std::uint64_t seed, double rate_scale) {
  STARLING_CHECK(!batch.empty() && batch.size() <= state_->rows_max);
  return catch_errors(state_->index, [&]() -> Result<void> {
    use_device(state_->index);
    state_->can_repeat = false;
    try {
      state_->reserve(batch.size());
      state_->current_index = 1 - state_->current_index;
      StepBuffers& buffers = state_->current();
      buffers.done.wait();
      buffers.staging.fill(data, batch, seed);
      buffers.staging.upload(state_->copies);
      state_->upload_update(buffers, rate_scale);
      state_->launch(buffers);
    } catch (...) {
      // The failed step may have copies in flight, but no event that the next step with these
      // buffers would wait for; and recorded graphs may use memory that was freed.
      state_->wait_for_streams();
      state_->clear_graphs();
      throw;
    }
    state_->can_repeat = true;
    return {};
  });
}

Result<void> Trainer::repeat() {
  return catch_errors(state_->index, [&]() -> Result<void> {
    use_device(state_->index);
    if (!state_->can_repeat)
      return Error{device_name(state_->index) +
                   ": there is no step to repeat; valid: repeat() after a step() that succeeded"};
    state_->launch(state_->current());
    return {};
  });
}

Result<Accumulator> Trainer::finish() {
  return catch_errors(state_->index, [&]() -> Result<Accumulator> {
    use_device(state_->index);
    Accumulator sums;
    // Waits for the stream before the copy, because this wait sleeps. A copy to memory that is not
    // pinned would wait for the stream too, but keep a core busy.
    state_->context.stream().finish();
    const auto stream = state_->context.stream().get();
    check(cudaMemcpyAsync(&sums, state_->run.accumulated(), sizeof sums, cudaMemcpyDeviceToHost,
                          stream),
          "reading sums");
    state_->run.clear_accumulated(state_->context);
    state_->context.stream().finish();
    return sums;
  });
}

Result<void> Trainer::read(std::span<float> w) const {
  STARLING_CHECK(w.size() == state_->w.size());
  return catch_errors(state_->index, [&]() -> Result<void> {
    use_device(state_->index);
    state_->context.stream().finish();
    const auto stream = state_->context.stream().get();
    check(
        cudaMemcpyAsync(w.data(), state_->w.data(), w.size_bytes(), cudaMemcpyDeviceToHost, stream),
        "reading parameters");
    state_->context.stream().finish();
    return {};
  });
}

std::size_t Trainer::recorded() const {
  return state_->step_buffers[0].graphs.size() + state_->step_buffers[1].graphs.size();
}

}  // namespace starling::models::cuda
