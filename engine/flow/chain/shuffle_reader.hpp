/// Chains that read what a stage has shuffled or kept. Thread-safe.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "starling/engine/flow/chain/chain.hpp"
#include "starling/engine/flow/shuffle/buckets.hpp"
#include "starling/engine/flow/shuffle/merge.hpp"
#include "starling/engine/flow/values/box.hpp"

namespace starling::flow {

/// The records that all tasks of a stage have for one part, in the order `Order`. Not thread-safe.
template <class R, class Order>
class ShuffleReader {
 public:
  ShuffleReader(const Task& task, std::vector<const Run<R>*> runs)
      : task_(task), reader_(merge_down<R, Order>(task, std::move(runs), made_)) {}
  ShuffleReader(const Task& task, const StagePtr& shuffle, Part part)
      : ShuffleReader(task, runs_for(task.outputs<Buckets<R>>(shuffle), part)) {}

  /// Returns the next record, which the caller may move from; null after the last.
  [[nodiscard]] R* get() const { return reader_.get(); }
  void advance() {
    task_.count_read();
    reader_.advance();
  }

 private:
  const Task& task_;
  /// The runs that merge_down() has merged; reader_ reads them.
  std::vector<std::unique_ptr<const Run<R>>> made_;
  MergeReader<R, Order> reader_;
};

/// The base of all chains that read one stage. Part p of such a chain reads what every part of the
/// stage has written for p, unless the chain replaces add_reads().
class StageReaderChain {
 public:
  StageReaderChain(StagePtr stage, const char* name, Part parts)
      : stage_(std::move(stage)), name_(name), parts_(parts) {}

  [[nodiscard]] Part parts() const { return parts_; }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return {stage_}; }
  void add_reads(Part part, std::vector<StageRead>& reads) const {
    reads.push_back({stage_, std::nullopt, part});
  }
  [[nodiscard]] std::string operations() const { return name_; }

 protected:
  [[nodiscard]] const StagePtr& stage() const { return stage_; }

  /// Moves `value_of(record)` of each record to the sink, until the sink returns false.
  template <class Reader, class ValueOf, class Sink>
  void read_all(Reader& reader, Part part, const ValueOf& value_of, const Sink& sink) const {
    std::uint64_t i = 0;
    run_located(
        [&] {
          for (; reader.get(); reader.advance(), ++i)
            if (!sink(std::move(value_of(*reader.get())))) return;
        },
        [&] { return location_in_part(name_, part, i); });
  }

 private:
  StagePtr stage_;
  std::string name_;
  Part parts_;
};

/// The records of a data set that a stage keeps. Its output of a part is one piece, number 0, which
/// this part alone reads.
template <class T>
class CacheChain : public StageReaderChain {
 public:
  using Value = T;
  using StageReaderChain::StageReaderChain;

  void add_reads(Part part, std::vector<StageRead>& reads) const {
    reads.push_back({stage(), part, 0});
  }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    const auto outputs = task.outputs<Buckets<Box<T>>>(stage());
    ShuffleReader<Box<T>, ArrivalOrder> reader{task, runs_for<Box<T>>({outputs[part]}, 0)};
    read_all(
        reader, part, [](Box<T>& box) -> T& { return box.value; }, sink);
  }
};

/// The records that a partitioner has sent to each part.
template <class T>
class PartitionChain : public StageReaderChain {
 public:
  using Value = T;
  using StageReaderChain::StageReaderChain;

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    ShuffleReader<Box<T>, ArrivalOrder> reader{task, stage(), part};
    read_all(
        reader, part, [](Box<T>& box) -> T& { return box.value; }, sink);
  }
};

/// The records in the order of their keys.
template <class R>
class SortChain : public StageReaderChain {
 public:
  using Value = std::decay_t<decltype(std::declval<R&>().record())>;
  using StageReaderChain::StageReaderChain;

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    ShuffleReader<R, KeyOrder> reader{task, stage(), part};
    read_all(
        reader, part, [](R& sorted) -> Value& { return sorted.record(); }, sink);
  }
};

}  // namespace starling::flow
