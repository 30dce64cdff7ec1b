/// A chain behind an interface, so that sets with different operations have one type. Records cross
/// the interface in batches: there is no virtual call for each of them. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/flow/chain/chain.hpp"
#include "starling/engine/flow/values/box.hpp"

namespace starling::flow {

template <class T>
class AnyChain {
 public:
  using Value = T;

  template <class C>
  requires(!std::same_as<C, AnyChain> && Chain<C>) explicit AnyChain(C chain)
      : chain_(std::make_shared<Erased<C>>(std::move(chain))) {}

  [[nodiscard]] Part parts() const { return chain_->parts(); }
  [[nodiscard]] std::vector<StagePtr> inputs() const { return chain_->inputs(); }
  void add_reads(Part part, std::vector<StageRead>& reads) const { chain_->add_reads(part, reads); }
  [[nodiscard]] std::string operations() const { return chain_->operations(); }
  [[nodiscard]] std::uint64_t source_hash() const { return chain_->source_hash(); }

  template <class Sink>
  void run(Task& task, Part part, const Sink& sink) const {
    chain_->run(task, part, [&sink](std::span<Box<T>> batch) {
      for (Box<T>& record : batch)
        if (!sink(std::move(record.value))) return false;
      return true;
    });
  }

 private:
  using BatchSink = std::function<bool(std::span<Box<T>>)>;

  struct Interface {
    virtual ~Interface() = default;
    [[nodiscard]] virtual Part parts() const = 0;
    [[nodiscard]] virtual std::vector<StagePtr> inputs() const = 0;
    virtual void add_reads(Part part, std::vector<StageRead>& reads) const = 0;
    [[nodiscard]] virtual std::string operations() const = 0;
    [[nodiscard]] virtual std::uint64_t source_hash() const = 0;
    virtual void run(Task& task, Part part, const BatchSink& sink) const = 0;
  };

  template <class C>
  struct Erased : Interface {
    explicit Erased(C c) : chain(std::move(c)) {}
    [[nodiscard]] Part parts() const override { return chain.parts(); }
    [[nodiscard]] std::vector<StagePtr> inputs() const override { return chain.inputs(); }
    void add_reads(Part part, std::vector<StageRead>& reads) const override {
      chain.add_reads(part, reads);
    }
    [[nodiscard]] std::string operations() const override { return chain.operations(); }
    [[nodiscard]] std::uint64_t source_hash() const override { return source_hash_of(chain); }
    void run(Task& task, Part part, const BatchSink& sink) const override {
      run_in_batches(chain, task, part, sink);
    }
    C chain;
  };

  /// On the last attempt a batch is one record, so that an error names the record that caused it.
  template <class C>
  static void run_in_batches(const C& chain, Task& task, Part part, const BatchSink& sink) {
    constexpr std::size_t batch_records = 256;
    const std::size_t size = task.is_last_attempt() ? 1 : batch_records;
    // New records replace those of the last batch, so that the memory which the old records own is
    // used again.
    std::vector<Box<T>> batch;
    batch.reserve(size);
    std::size_t used = 0;
    bool goes_on = true;
    chain.run(task, part, [&]<class R>(R&& record) {
      if (used < batch.size())
        batch[used].value = std::forward<R>(record);
      else
        batch.push_back({std::forward<R>(record)});
      if (++used < size) return true;
      goes_on = sink(std::span{batch}.first(std::exchange(used, 0)));
      return goes_on;
    });
    if (goes_on && used > 0) sink(std::span{batch}.first(used));
  }

  std::shared_ptr<const Interface> chain_;
};

}  // namespace starling::flow
