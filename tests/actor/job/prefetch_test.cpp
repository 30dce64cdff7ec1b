// Threads that wait have the data of the next step brought nearer.
#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <vector>

#include "starling/actor/train/train.hpp"
#include "starling/models/table.hpp"

namespace starling::actor {
namespace {

using Samples = std::vector<std::uint32_t>;

/// The requests to the data, in order.
struct Diary {
  enum class What { prefetched, read };
  struct Entry {
    What what;
    Samples samples;
  };
  std::mutex mutex;
  std::vector<Entry> entries;

  void note(What what, models::Batch batch) {
    const std::lock_guard lock{mutex};
    entries.push_back({what, {batch.begin(), batch.end()}});
  }
};

struct NotedData {
  Diary& diary;
  bool throws = false;

  [[nodiscard]] std::size_t size() const { return 64; }
  void prefetch(models::Batch batch) const {
    diary.note(Diary::What::prefetched, batch);
    if (throws) throw std::runtime_error{"no disk"};
  }
};

struct ReadingModel {
  using Scalar = float;
  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {3}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const NotedData& data, models::Batch batch,
                  std::span<float> g, models::Pass&) const {
    data.diary.note(Diary::What::read, batch);
    g[0] = 1;
    return 1;
  }
  models::Metrics evaluate(std::span<const float>, const NotedData&, models::Batch,
                           models::Pass&) const {
    return {{"loss", 1}};
  }
};

/// Few steps, each kept back for long enough that the thread has nothing else to do.
TrainOptions slow_job() {
  TrainOptions options;
  options.batch = 8;
  options.job.workers = 1;
  options.job.barrier = {barrier::Asp{}};
  options.job.steps = 20;
  options.job.delay = parse_distribution("const:5ms").value();
  return options;
}

static_assert(models::PrefetchableData<NotedData> && models::PrefetchableData<models::Table>);

TEST(Prefetch, BringsNearerWhatTheNextStepReads) {
  Diary diary;
  const auto outcome = train(ReadingModel{}, NotedData{diary}, nullptr, slow_job());
  ASSERT_TRUE(outcome) << outcome.error().message;
  std::size_t read = 0;
  std::size_t prefetched = 0;
  for (std::size_t i = 0; i < diary.entries.size(); ++i) {
    if (diary.entries[i].what == Diary::What::read) {
      ++read;
      continue;
    }
    ++prefetched;
    if (i + 1 == diary.entries.size()) break;  // the steps are made
    EXPECT_EQ(diary.entries[i + 1].what, Diary::What::read);
    EXPECT_EQ(diary.entries[i + 1].samples, diary.entries[i].samples);
  }
  EXPECT_EQ(read, 20);
  EXPECT_GE(prefetched, 10);
}

TEST(Prefetch, ThatFailsHarmsNobody) {
  Diary diary;
  const auto outcome =
      train(ReadingModel{}, NotedData{.diary = diary, .throws = true}, nullptr, slow_job());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->end, Outcome::End::completed);
}

}  // namespace
}  // namespace starling::actor
