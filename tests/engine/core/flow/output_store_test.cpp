/// The records that a member has: pieces of them are the same on another member, and damaged ones
/// are errors.
#include "starling/engine/core/flow/output_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/flow/action_builder.hpp"
#include "starling/engine/flow/chain/sources.hpp"
#include "starling/engine/flow/shuffle_stages.hpp"
#include "tests/engine/core/flow/program_thread.hpp"

namespace starling::core {
namespace {

using Pair = std::pair<std::string, int>;
using Pairs = std::vector<Pair>;

constexpr flow::Part buckets = 3;

/// A member that has begun an action of one stage, which shuffles pairs by key.
class StoringMember {
 public:
  explicit StoringMember(const Pairs& pairs, std::size_t memory_bytes = 1'000'000)
      : memory_(std::make_shared<TestTaskMemory>(memory_bytes)), store_(memory_, 1000) {
    const flow::CollectionChain<Pair> chain{pairs, 1};
    stage_ = flow::group_stage(chain, "group", buckets);
    auto built = ActionBuilder{}.build(stage_, false).value();
    action_ = built.action;
    store_.begin(built.action, std::move(built.plan));
  }

  void compute() {
    auto runnable = store_.make_task({{action_->output_of(0, 0)}, true}, {});
    store_.put(name().output, runnable.stage->run(runnable.task));
  }
  [[nodiscard]] PieceName name(flow::Part bucket = 0) const {
    return {action_->output_of(0, 0), bucket};
  }
  /// Returns all chunks of the buckets.
  std::vector<PieceChunk> chunks() {
    std::vector<PieceChunk> chunks;
    for (flow::Part bucket = 0; bucket < buckets; ++bucket) do {
        const std::uint32_t next =
            chunks.empty() || chunks.back().is_last ? 0 : chunks.back().chunk + 1;
        for (const PieceChunk& chunk :
             store_.execute(ReadPieces{7, {1, {name(bucket)}, next}}).chunks)
          chunks.push_back(chunk);
      } while (!chunks.back().is_last);
    return chunks;
  }
  /// Stores a chunk. Returns the error.
  std::string store(const PieceChunk& chunk) {
    return store_.execute(StorePiece{1, name().output.stage, chunk}).error;
  }

 private:
  std::shared_ptr<TestTaskMemory> memory_;
  OutputStore store_;
  flow::StagePtr stage_;
  ActionPtr action_;
};

Pairs many_pairs() {
  Pairs pairs;
  for (int i = 0; i < 2000; ++i) pairs.emplace_back("key " + std::to_string(i * 7 % 300), i);
  return pairs;
}

TEST(OutputStore, SendsTheSamePiecesWhetherSpilledOrNot) {
  StoringMember in_memory{many_pairs()};
  in_memory.compute();
  StoringMember spilling{many_pairs(), 0};
  spilling.compute();
  const auto chunks = in_memory.chunks();
  const auto same = spilling.chunks();
  ASSERT_EQ(chunks.size(), same.size());
  ASSERT_GT(chunks.size(), 20U);
  StoringMember receiver{{}};
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(chunks[i].bytes.get(), same[i].bytes.get())) << i;
    EXPECT_EQ(receiver.store(chunks[i]), "") << i;
  }
}

TEST(OutputStore, RefusesWhatComesAfterTheLastChunk) {
  StoringMember sender{many_pairs()};
  sender.compute();
  StoringMember receiver{{}};
  auto chunk = sender.chunks().front();
  chunk.is_last = true;
  chunk.bytes = {};
  EXPECT_EQ(receiver.store(chunk), "");
  chunk.chunk = 1;
  chunk.bytes = RecordBytes::copy_of(std::vector<std::byte>(4));
  EXPECT_EQ(receiver.store(chunk), "a piece of records has bytes after its last chunk");
}

TEST(OutputStore, DamagedPiecesAreErrorsOrRecords) {
  StoringMember sender{many_pairs()};
  sender.compute();
  const auto chunks = sender.chunks();
  Random random{3};
  int errors = 0;
  for (int i = 0; i < 3000; ++i) {
    StoringMember receiver{{}};
    const std::uint64_t damaged = random.below(chunks.size());
    for (std::size_t at = 0; at < chunks.size(); ++at) {
      PieceChunk chunk = chunks[at];
      if (at == damaged) {
        const auto bytes = chunk.bytes.get();
        std::vector<std::byte> copy{bytes.begin(), bytes.end()};
        copy[random.below(copy.size())] ^= static_cast<std::byte>(1U << random.below(8));
        if (random.below(4) == 0) copy.resize(random.below(copy.size()));
        chunk.bytes = RecordBytes::copy_of(copy);
      }
      if (receiver.store(chunk).empty()) continue;
      ++errors;
      break;
    }
  }
  // A bit of a hash or of a value may change unseen.
  EXPECT_GT(errors, 500);
}

}  // namespace
}  // namespace starling::core
