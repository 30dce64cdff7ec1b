/// The pieces of outputs, as bytes that travel from node to node. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/stage.hpp"
#include "starling/engine/flow/plan/task.hpp"
#include "starling/engine/flow/shuffle/buckets.hpp"
#include "starling/engine/flow/values/codec.hpp"

namespace starling::flow {

/// Reads the runs of one bucket. Each block of bytes begins with a bool, which is true if the block
/// begins a run.
template <class R>
class BucketPieceReader : public PieceReader {
 public:
  BucketPieceReader(Output output, Part bucket) : output_(std::move(output)) {
    const auto& buckets = *static_cast<const Buckets<R>*>(output_.get());
    if (!buckets.has(bucket))
      throw TaskFailure{Error{"there is no piece " + std::to_string(bucket) +
                              "; valid: one of the " + std::to_string(buckets.lists.size()) +
                              " from " + std::to_string(buckets.first) + " on"}};
    runs_ = buckets[bucket];
  }

  Bytes next() override {
    std::span<const std::byte> block;
    bool begins_run = false;
    while (block.empty()) {
      if (blocks_) block = blocks_->next();
      if (!block.empty()) break;
      if (runs_.empty()) return {};
      blocks_.emplace(runs_.front());
      runs_ = runs_.subspan(1);
      begins_run = true;
    }
    Bytes piece;
    piece.reserve(1 + block.size());
    put(piece, begins_run);
    piece.insert(piece.end(), block.begin(), block.end());
    return piece;
  }

 private:
  Output output_;
  /// The runs that come after that of `blocks_`.
  std::span<const Run<R>> runs_;
  std::optional<BlockReader> blocks_;
};

/// Makes the runs again, in memory or spilled, whose bytes a BucketPieceReader has read.
template <class R>
class BucketPieceWriter : public PieceWriter {
 public:
  BucketPieceWriter(const Task& task, Part bucket) : task_(task), buckets_{bucket, {}} {
    buckets_.lists.emplace_back();
  }

  void add(std::span<const std::byte> bytes) override {
    bool begins_run = false;
    get(bytes, begins_run);
    if (begins_run) end_run();
    // Another node has made the bytes, so they are checked before a task reads them.
    for (std::span<const std::byte> rest = bytes; !rest.empty();) get_record(rest, checked_);
    if (!bytes.empty()) blocks_.in_memory.emplace_back(bytes.begin(), bytes.end());
    bytes_ += bytes.size();
    // The sender's runs are not longer than this, unless one record is.
    if (bytes_ > 4 * task_.memory().buffer_bytes()) end_run();
  }
  [[nodiscard]] Output finish() override {
    end_run();
    return std::make_shared<const Buckets<R>>(std::move(buckets_));
  }

 private:
  void end_run() {
    if (bytes_ == 0) return;
    buckets_.lists.back().push_back(make_run<R>(task_, std::exchange(blocks_, {})));
    bytes_ = 0;
  }

  const Task& task_;
  Buckets<R> buckets_;
  /// The run that is not complete yet.
  Blocks blocks_;
  std::size_t bytes_ = 0;
  /// The last record that was checked.
  R checked_{};
};

/// Reads an output that is one record.
template <Record T>
class RecordPieceReader : public PieceReader {
 public:
  explicit RecordPieceReader(Output output) : output_(std::move(output)) {}

  Bytes next() override {
    Bytes bytes;
    if (const Output output = std::exchange(output_, nullptr))
      put_record(bytes, *static_cast<const T*>(output.get()));
    return bytes;
  }

 private:
  /// Null once it was read.
  Output output_;
};

/// Makes the record again whose bytes a RecordPieceReader has read.
template <Record T>
class RecordPieceWriter : public PieceWriter {
 public:
  void add(std::span<const std::byte> bytes) override {
    if (std::exchange(has_value_, true)) throw DecodeError{"there is more than one record"};
    get_record(bytes, value_);
    if (!bytes.empty()) throw DecodeError{"bytes are left over after a record"};
  }
  [[nodiscard]] Output finish() override {
    if (!has_value_) throw DecodeError{"the record is missing"};
    return std::make_shared<const T>(std::move(value_));
  }

 private:
  T value_{};
  bool has_value_ = false;
};

namespace detail {

template <class O>
inline constexpr bool is_buckets = false;
template <class R>
inline constexpr bool is_buckets<Buckets<R>> = true;
template <class O>
struct RecordOf;
template <class R>
struct RecordOf<Buckets<R>> {
  using Type = R;
};

}  // namespace detail

/// Returns the form in which outputs of type O travel; an empty form if they cannot travel.
template <class O>
[[nodiscard]] OutputForm output_form() {
  if constexpr (detail::is_buckets<O>) {
    using R = typename detail::RecordOf<O>::Type;
    return {[](Output output, Part piece) {
              return std::make_unique<BucketPieceReader<R>>(std::move(output), piece);
            },
            [](const Task& task, Part piece) {
              return std::make_unique<BucketPieceWriter<R>>(task, piece);
            }};
  } else if constexpr (Record<O>) {
    return {[](Output output, Part) {
              return std::make_unique<RecordPieceReader<O>>(std::move(output));
            },
            [](const Task&, Part) { return std::make_unique<RecordPieceWriter<O>>(); }};
  } else {
    return {};
  }
}

}  // namespace starling::flow
