#include "starling/models/cuda/training/trainer.hpp"

#include <array>

#include "starling/base/check.hpp"
#include "starling/models/cuda/graphs.hpp"
#include "starling/models/cuda/guard.hpp"
#include "starling/models/cuda/net_run.hpp"
#include "starling/models/cuda/probe.hpp"
#include "starling/models/cuda/staging.hpp"
#include "starling/models/cuda/training/device_update.hpp"

namespace starling::models::cuda {
namespace {

/// A batch on its way to the device, and the update that its step reads. Two slots take turns.
struct Slot {
  Slot(const Net<float>& net, std::size_t ids_in_row) : staging(net, ids_in_row) {}

  Staging staging;
  PinnedArray<StagedUpdate> update_here{1};
  DeviceArray<StagedUpdate> update{1};
  Event copied;
  /// Recorded behind the step: after it both copies may be written again.
  Event done;
  Graphs graphs;
};

}  // namespace

struct Trainer::State {
  State(const Net<float>& net, std::size_t device, const TrainerOptions& how)
      : index(device),
        options(how),
        context(how.precision),
        run(net),
        update(how.optimizer, how.clip, net.parameters()),
        w(total_size(net.parameters())),
        g(w.size()),
        slots{Slot{net, run.ids_in_row()}, Slot{net, run.ids_in_row()}} {}

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// Waits for work in flight, which must not read memory after it is returned.
  ~State() {
    use_device_to_free(index);
    settle();
  }

  std::size_t index;
  TrainerOptions options;
  Context context;
  Stream copies;
  NetRun run;
  DeviceUpdate update;
  DeviceArray<float> w;
  DeviceArray<float> g;
  std::array<Slot, 2> slots;
  std::size_t turn = 0;
  std::uint64_t steps = 0;
  std::size_t rows_max = 0;
  /// True where all work of the last step was put into the streams.
  bool repeats = false;

  Slot& current() { return slots[turn]; }

  /// Waits for all work in the streams, even if some of it failed.
  void settle() const noexcept {
    static_cast<void>(cudaStreamSynchronize(copies.get()));
    static_cast<void>(cudaStreamSynchronize(context.stream().get()));
  }

  void set_update(Slot& slot, double rate_scale) {
    *slot.update_here.data() =
        stage(options.optimizer, {.rate_scale = rate_scale, .l2 = options.l2, .t = ++steps});
    check(cudaMemcpyAsync(slot.update.data(), slot.update_here.data(), slot.update.bytes(),
                          cudaMemcpyHostToDevice, copies.get()),
          "copying an update");
    slot.copied.record(copies);
    slot.copied.hold(context.stream());
  }

  void launch(Slot& slot) {
    slot.graphs.run(context, slot.staging.rows(), [&] { put(slot); });
    slot.done.record(context.stream());
  }

  void put(Slot& slot) {
    const std::size_t rows = slot.staging.rows();
    const NetInput input = slot.staging.input();
    const float weight = 1 / static_cast<float>(rows);
    check(cudaMemsetAsync(g.data(), 0, g.bytes(), context.stream().get()), "clearing a gradient");
    run.forward(context, w.data(), input, rows, true, 0);
    run.loss(context, input, rows, weight);
    run.backward(context, w.data(), input, rows, weight, 0, g.data());
    update.apply(context, slot.update.data(), g.data(), w.data());
  }

  /// Chooses algorithms for a batch size; memory was taken in make().
  void make_room(std::size_t rows) {
    bool moved = run.reserve(rows, context);
    for (Slot& slot : slots) moved = slot.staging.reserve(rows) || moved;
    if (moved) forget_graphs();
  }

  void forget_graphs() {
    for (Slot& slot : slots) slot.graphs.clear();
  }
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::make(const Net<float>& net, std::size_t index, std::size_t rows,
                              std::span<const float> w, const TrainerOptions& options) {
  if (auto works = probe(index); !works) return std::move(works).error();
  if (const std::string why = refusal(net); !why.empty()) return Error{name_of(index) + ": " + why};
  return guarded(index, [&]() -> Result<Trainer> {
    use_device(index);
    auto state = std::make_unique<State>(net, index, options);
    STARLING_CHECK(w.size() == state->w.size());
    if (rows == 0 || rows > state->run.rows_max())
      return Error{name_of(index) + ": batches of " + std::to_string(rows) +
                   " rows; valid for this net: 1 to " + std::to_string(state->run.rows_max())};
    state->rows_max = rows;
    state->make_room(rows);
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
  return guarded(state_->index, [&]() -> Result<void> {
    use_device(state_->index);
    state_->repeats = false;
    try {
      state_->make_room(batch.size());
      state_->turn = 1 - state_->turn;
      Slot& slot = state_->current();
      slot.done.wait();
      slot.staging.fill(data, batch, seed);
      slot.staging.upload(state_->copies);
      state_->set_update(slot, rate_scale);
      state_->launch(slot);
    } catch (...) {
      // The failed step's copies have no mark for which the slot's next step would wait, and
      // recorded graphs may use memory that was returned.
      state_->settle();
      state_->forget_graphs();
      throw;
    }
    state_->repeats = true;
    return {};
  });
}

Result<void> Trainer::repeat() {
  return guarded(state_->index, [&]() -> Result<void> {
    use_device(state_->index);
    if (!state_->repeats)
      return Error{name_of(state_->index) + ": no step to repeat; valid: after one that succeeded"};
    state_->launch(state_->current());
    return {};
  });
}

Result<Accumulator> Trainer::finish() {
  return guarded(state_->index, [&]() -> Result<Accumulator> {
    use_device(state_->index);
    Accumulator sums;
    // Sleeps first: a copy to memory that is not pinned waits for earlier work without sleeping.
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
  return guarded(state_->index, [&]() -> Result<void> {
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
  return state_->slots[0].graphs.size() + state_->slots[1].graphs.size();
}

}  // namespace starling::models::cuda
