/// A worker that also owns ranges, as the simulator of protocols drives it.
#pragma once

#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::core {

/// A core that has a handler for messages of type M.
template <class Core, class M>
concept Handles = requires(Core& core, const Context& context, const M& message) {
  core.on(context, message);
};

/// Passes each message to the worker or to the shard, depending on which has a handler for it. The
/// worker is the same class as in the other modes. One call at a time; not thread-safe.
class Peer {
 public:
  Peer(WorkerOptions worker, ShardOptions shard)
      : worker_(std::move(worker)), shard_(std::move(shard)) {}

  template <class M>
  requires Handles<Worker, M> || Handles<Shard, M>
  void on(const Context& context, const M& message) {
    if constexpr (Handles<Worker, M>)
      worker_.on(context, message);
    else
      shard_.on(context, message);
  }

  void on_left(const Context& context, MemberId worker) {
    shard_.on_left(context, worker);
    worker_.on_left(context, worker);
  }

  [[nodiscard]] Worker& worker() noexcept { return worker_; }
  [[nodiscard]] Shard& shard() noexcept { return shard_; }

 private:
  Worker worker_;
  Shard shard_;
};

}  // namespace starling::core
