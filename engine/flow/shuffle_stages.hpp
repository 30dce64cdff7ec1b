/// Makes the stages at the end of which the records of a chain are kept, counted, sampled or
/// shuffled. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/flow/chain/chain.hpp"
#include "starling/engine/flow/shuffle/buckets.hpp"
#include "starling/engine/flow/shuffle/combining_buffer.hpp"
#include "starling/engine/flow/shuffle/partitioner.hpp"
#include "starling/engine/flow/shuffle/pieces.hpp"
#include "starling/engine/flow/values/box.hpp"

namespace starling::flow {

/// Makes a stage that runs `compute(task, chain)` for each part of the chain. The result of
/// `compute` is the output of the part.
template <Chain C, class F>
[[nodiscard]] std::shared_ptr<Stage> make_stage(const C& chain, const std::string& name, F compute,
                                                std::string partitioner = {}) {
  using O = std::invoke_result_t<const F&, Task&, const C&>;
  auto stage = std::make_shared<Stage>();
  stage->description = {chain.operations() + " | " + name, chain.parts(), std::move(partitioner)};
  stage->inputs = chain.inputs();
  stage->reads = [chain](Part part) {
    std::vector<StageRead> reads;
    chain.add_reads(part, reads);
    return reads;
  };
  stage->form = output_form<O>();
  stage->source_hash = [chain] { return source_hash_of(chain); };
  stage->run = [chain, compute = std::move(compute)](Task& task) -> Output {
    return std::make_shared<const O>(compute(task, chain));
  };
  return stage;
}

/// Counts the records of each part: each output is a std::uint64_t.
template <Chain C>
[[nodiscard]] StagePtr count_stage(const C& chain) {
  return make_stage(chain, "count", [](Task& task, const C& c) {
    std::uint64_t count = 0;
    c.run(task, task.part(), [&count](const auto&) { return ++count, true; });
    return count;
  });
}

/// Keeps the records of each part.
template <Chain C>
[[nodiscard]] StagePtr cache_stage(const C& chain) {
  using R = Box<typename C::Value>;
  auto stage = make_stage(chain, "cache", [](Task& task, const C& c) {
    BucketWriter<R, ArrivalBuffer<R>> writer{task, 1};
    c.run(task, task.part(), [&]<class T>(T&& record) {
      writer.add(0, std::forward<T>(record));
      return true;
    });
    return writer.finish();
  });
  stage->kept = std::make_shared<KeptOutputs>();
  return stage;
}

/// Shuffles pairs by a partitioner of their keys.
template <Chain C, class P>
[[nodiscard]] StagePtr partition_stage(const C& chain, const P& partitioner) {
  using R = Box<typename C::Value>;
  const auto compute = [partitioner](Task& task, const C& c) {
    const Part parts = partitioner.parts();
    BucketWriter<R, ArrivalBuffer<R>> writer{task, parts};
    c.run(task, task.part(), [&]<class T>(T&& record) {
      const Part part = partitioner.part_of(std::as_const(record.first));
      if (part >= parts)
        throw std::out_of_range{"the partitioner " + partitioner.print() + " returned part " +
                                std::to_string(part) + "; valid: less than " +
                                std::to_string(parts)};
      writer.add(part, std::forward<T>(record));
      return true;
    });
    return writer.finish();
  };
  return make_stage(chain, "partition_by", compute, partitioner.print());
}

/// Shuffles pairs by the hashes of their keys, and sorts them by these hashes. `Buffer` decides
/// whether equal keys are combined before the shuffle; the argument of `make_buffer` is true if the
/// buffer must be prompt (CombiningBuffer).
template <class Buffer, Chain C>
[[nodiscard]] StagePtr hash_stage(const C& chain, const char* name, Part parts,
                                  std::function<Buffer(bool)> make_buffer) {
  using K = typename C::Value::first_type;
  using V = typename C::Value::second_type;
  using R = Keyed<K, V>;
  const HashPartitioner partitioner{parts};
  const auto compute = [partitioner, make_buffer](Task& task, const C& c) {
    BucketWriter<R, Buffer> writer{task, partitioner.parts(), make_buffer(task.is_last_attempt())};
    const auto add = [&]<class T>(T&& record) {
      check_key(record.first);
      const std::uint64_t hash = hash_of(record.first);
      writer.add(partitioner.part_of_hash(hash), hash, std::forward<T>(record).first,
                 std::forward<T>(record).second);
      return true;
    };
    if constexpr (Buffer::takes_views && hashes_like_views<K>)
      c.run(task, task.part(), ViewSink<decltype(add)>{add});
    else
      c.run(task, task.part(), add);
    return writer.finish();
  };
  return make_stage(chain, name, compute, partitioner.print());
}

/// Shuffles pairs by key without combining them.
template <Chain C>
[[nodiscard]] StagePtr group_stage(const C& chain, const char* name, Part parts) {
  using R = Keyed<typename C::Value::first_type, typename C::Value::second_type>;
  using Buffer = SortingBuffer<R, HashOrder>;
  return hash_stage<Buffer>(chain, name, parts,
                            std::function<Buffer(bool)>{[](bool) { return Buffer{}; }});
}

/// Shuffles pairs by key. Before that, `combine` makes one value of all values of a key.
template <Chain C, class F>
[[nodiscard]] StagePtr combine_stage(const C& chain, const char* name, Part parts,
                                     const F& combine) {
  using Buffer = CombiningBuffer<typename C::Value::first_type, typename C::Value::second_type, F>;
  const auto shared = std::make_shared<const F>(combine);
  return hash_stage<Buffer>(chain, name, parts,
                            std::function<Buffer(bool)>{[shared](bool is_prompt) {
                              return Buffer{*shared, is_prompt};
                            }});
}

}  // namespace starling::flow
