// The engine of make_engine(): computes nets on a device for callers that keep parameters and
// gradients on the host.
#include <algorithm>
#include <mutex>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/models/cuda/catch_errors.hpp"
#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/graphs.hpp"
#include "starling/models/cuda/net_run.hpp"
#include "starling/models/cuda/parameter_copies.hpp"
#include "starling/models/cuda/probe.hpp"
#include "starling/models/cuda/staging.hpp"

namespace starling::models::cuda {
namespace {

/// The number of rows that are evaluated at once, if the job's batches are smaller and there is
/// enough memory.
constexpr std::size_t evaluation_rows = 256;

/// The device memory and objects with which one call of the engine computes. Requires: the thread
/// calls use_device() before each use, also before the destructor.
class Session {
 public:
  Session(const Net<float>& net, Precision precision)
      : net_(net),
        context_(precision),
        run_(net),
        staging_(net, run_.ids_in_row()),
        copies_(net.parameters()),
        w_(total_size(net.parameters())),
        g_(w_.size()) {}

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Waits for work in flight, so that it does not use memory that is already freed.
  ~Session() { static_cast<void>(cudaStreamSynchronize(context_.stream().get())); }

  /// Allocates memory for a batch of `rows` rows in micro-batches of at most `rows_max` rows.
  void reserve(std::size_t rows, std::size_t rows_max) {
    const std::size_t micro_batch_rows = std::min({rows, rows_max, run_.rows_max()});
    try {
      bool has_moved = run_.reserve(micro_batch_rows, context_);
      // The last micro-batch may have fewer rows.
      if (rows > micro_batch_rows && rows % micro_batch_rows > 0)
        has_moved = run_.reserve(rows % micro_batch_rows, context_) || has_moved;
      has_moved = staging_.reserve(micro_batch_rows) || has_moved;
      if (has_moved) graphs_.clear();
    } catch (...) {
      // Some of the memory may have moved already.
      graphs_.clear();
      throw;
    }
  }

  /// See NetEngine::gradient().
  double gradient(std::span<const float> w, const Table& data, Batch batch, std::span<float> g,
                  std::uint64_t seed) {
    const std::size_t micro_batch_rows = run_.rows_max();
    reserve(batch.size(), micro_batch_rows);
    const auto rows = touched(data, batch);
    // The memory of g_ is free for staging until clear_sums() clears it.
    copies_.upload(context_, w, rows, g_.data(), w_.data());
    if (batch.size() <= micro_batch_rows) {
      staging_.fill(data, batch, seed);
      graphs_.run(context_, batch.size(), [&] {
        clear_sums();
        add_gradient(batch.size(), 0);
      });
    } else {
      clear_sums();
      for (std::size_t start = 0; start < batch.size(); start += micro_batch_rows) {
        context_.stream().finish();
        staging_.fill(data, batch.subspan(start, std::min(micro_batch_rows, batch.size() - start)),
                      seed);
        add_gradient(batch.size(), static_cast<std::uint32_t>(start / micro_batch_rows));
      }
    }
    // The memory of w_ is free for staging, because the passes over the batch are done.
    copies_.add_gradient_to(context_, g_.data(), rows, w_.data(), g);
    return read_accumulated().loss / static_cast<double>(batch.size());
  }

  /// See NetEngine::evaluate(). Evaluates in micro-batches of at most `rows_max` rows.
  Accumulator evaluate(std::span<const float> w, const Table& data, Batch batch,
                       std::span<float> out, std::size_t rows_max) {
    const std::size_t micro_batch_rows = std::min(rows_max, run_.rows_max());
    reserve(batch.size(), micro_batch_rows);
    copies_.upload(context_, w, touched(data, batch), g_.data(), w_.data());
    run_.clear_accumulated(context_);
    for (std::size_t start = 0; start < batch.size(); start += micro_batch_rows) {
      const std::size_t rows = std::min(micro_batch_rows, batch.size() - start);
      context_.stream().finish();
      staging_.fill(data, batch.subspan(start, rows), 0);
      staging_.upload(context_.stream());
      run_.forward(context_, w_.data(), staging_.input(), rows, false, 0);
      run_.loss(context_, staging_.input(), rows, 0);
      if (out.empty()) continue;
      const auto part = out.subspan(start * net_.outputs(), rows * net_.outputs());
      // Waits here, asleep: a copy to memory that is not pinned would wait for the stream and keep
      // a core busy.
      context_.stream().finish();
      check(cudaMemcpyAsync(part.data(), run_.scores(), part.size_bytes(), cudaMemcpyDeviceToHost,
                            context_.stream().get()),
            "reading scores");
    }
    return read_accumulated();
  }

 private:
  /// Returns the rows of row-sparse parameters that the batch uses. Does not call Net::touched() if
  /// the net has no such parameter, because the call would allocate memory.
  [[nodiscard]] std::vector<TouchedRows> touched(const Table& data, Batch batch) const {
    return copies_.has_row_sparse() ? net_.touched(data, batch) : std::vector<TouchedRows>{};
  }

  void clear_sums() {
    check(cudaMemsetAsync(g_.data(), 0, g_.bytes(), context_.stream().get()),
          "clearing a gradient");
    run_.clear_accumulated(context_);
  }

  /// Adds the gradient of the staged rows, which are micro-batch number `micro_batch` of a batch of
  /// `batch_rows`.
  void add_gradient(std::size_t batch_rows, std::uint32_t micro_batch) {
    const std::size_t rows = staging_.rows();
    const NetInput input = staging_.input();
    const float weight = 1 / static_cast<float>(batch_rows);
    staging_.upload(context_.stream());
    run_.forward(context_, w_.data(), input, rows, true, micro_batch);
    run_.loss(context_, input, rows, weight);
    run_.backward(context_, w_.data(), input, rows, weight, micro_batch, g_.data());
  }

  Accumulator read_accumulated() {
    check(cudaMemcpyAsync(accumulated_.data(), run_.accumulated(), sizeof(Accumulator),
                          cudaMemcpyDeviceToHost, context_.stream().get()),
          "reading sums");
    context_.stream().finish();
    return *accumulated_.data();
  }

  Net<float> net_;
  Context context_;
  NetRun run_;
  Staging staging_;
  ParameterCopies copies_;
  DeviceArray<float> w_;
  DeviceArray<float> g_;
  PinnedArray<Accumulator> accumulated_{1};
  GraphCache graphs_;
};

/// Gives each call its own session, so that calls may overlap. Makes a session if none is idle.
class Engine final : public NetEngine<float> {
  // Calls work(session) with a session that no other call uses, and returns its result. This
  // function is the first of the class, because the others need its deduced return type.
  template <class Work>
  auto with_session(const Work& work) const {
    try {
      use_device(index_);
      std::unique_ptr<Session> session = take_session();
      auto result = work(*session);
      // An exception skips these lines, so that a session that has failed is not used again.
      const std::lock_guard lock{mutex_};
      idle_sessions_.push_back(std::move(session));
      return result;
    } catch (const std::exception& failure) {
      throw std::runtime_error{device_name(index_) + ": " + failure.what()};
    }
  }

 public:
  Engine(const Net<float>& net, std::size_t index, Precision precision)
      : net_(net), index_(index), precision_(precision) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() override {
    use_device_to_free(index_);
    idle_sessions_.clear();
  }

  double gradient(std::span<const float> w, const Table& data, Batch batch, std::span<float> g,
                  std::uint64_t seed) const override {
    return with_session([&](Session& s) { return s.gradient(w, data, batch, g, seed); });
  }
  Accumulator evaluate(std::span<const float> w, const Table& data, Batch batch,
                       std::span<float> out) const override {
    if (batch.empty()) return {};
    return with_session([&](Session& s) {
      const std::size_t at_once =
          reserve_what_fits(s, batch.size(), evaluation_batch_max_, batch_rows_);
      return s.evaluate(w, data, batch, out, at_once);
    });
  }
  /// Allocates memory in the first session for batches of `rows` rows and, if there is enough
  /// memory, for evaluation of evaluation_rows rows at once. Must be called before any other
  /// function.
  void reserve(std::size_t rows) {
    with_session([&](Session& s) {
      s.reserve(rows, rows);
      batch_rows_ = rows;
      const std::size_t most = std::max(rows, evaluation_rows);
      evaluation_batch_max_ = reserve_what_fits(s, most, most, rows);
      return 0;
    });
  }

 private:
  /// Allocates memory in the session for batches of `rows` rows in micro-batches of `most` rows.
  /// While there is too little memory, halves the number of rows of a micro-batch, down to `least`
  /// at the lowest. Returns this number.
  static std::size_t reserve_what_fits(Session& s, std::size_t rows, std::size_t most,
                                       std::size_t least) {
    for (; most > least; most /= 2) {
      try {
        s.reserve(rows, most);
        return most;
      } catch (const Failure& failure) {
        if (failure.cause() != Failure::Cause::memory) throw;
      }
    }
    s.reserve(rows, least);
    return least;
  }

  std::unique_ptr<Session> take_session() const {
    {
      const std::lock_guard lock{mutex_};
      if (!idle_sessions_.empty()) {
        auto session = std::move(idle_sessions_.back());
        idle_sessions_.pop_back();
        return session;
      }
    }
    return std::make_unique<Session>(net_, precision_);
  }

  Net<float> net_;
  std::size_t index_;
  /// The rows of a batch, for which every session must have memory.
  std::size_t batch_rows_ = 1;
  /// The most rows that are evaluated at once. A session for which there is less memory than
  /// reserve() found evaluates fewer.
  std::size_t evaluation_batch_max_ = 1;
  Precision precision_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Session>> idle_sessions_;
};

}  // namespace

Result<std::shared_ptr<const NetEngine<float>>> make_engine(const Net<float>& net,
                                                            std::size_t index, std::size_t rows,
                                                            Precision precision) {
  if (auto valid = probe(index); !valid) return std::move(valid).error();
  if (const std::string reason = unsupported_reason(net); !reason.empty())
    return Error{device_name(index) + ": " + reason};
  try {
    auto engine = std::make_shared<Engine>(net, index, precision);
    engine->reserve(std::max<std::size_t>(rows, 1));
    return std::shared_ptr<const NetEngine<float>>{std::move(engine)};
  } catch (const std::exception& failure) {
    return Error{failure.what()};
  }
}

}  // namespace starling::models::cuda
