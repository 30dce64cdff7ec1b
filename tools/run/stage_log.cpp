#include "starling/tools/run/stage_log.hpp"

#include <algorithm>

#include "starling/base/seconds.hpp"
#include "starling/tools/run/stage_line.hpp"

namespace starling::program {

void StageLog::update(const flow::StageProgress& progress) {
  const std::lock_guard lock{mutex_};
  const auto now = Clock::now();
  const auto [at, is_new] = runs_.try_emplace({progress.action, progress.stage});
  StageRun& stage = at->second;
  if (is_new) {
    stage.description = *progress.description;
    stage.begin = now;
    order_.push_back(at->first);
  }
  stage.counts = progress.counts;
  stage.end = now;
  if (now < next_show_at_) return;
  next_show_at_ = now + std::chrono::milliseconds{100};
  display_.show(stage_line(stage.description, progress.parts_done, stage.counts,
                           in_seconds(now - stage.begin)));
}

void StageLog::close() {
  const std::lock_guard lock{mutex_};
  display_.close();
}

bool StageLog::is_empty() const {
  const std::lock_guard lock{mutex_};
  return runs_.empty();
}

std::vector<StageSummary> StageLog::summaries() const {
  const std::lock_guard lock{mutex_};
  std::vector<StageSummary> all;
  for (const auto& id : order_) {
    const StageRun& stage = runs_.at(id);
    auto same = std::ranges::find(all, stage.description, &StageSummary::description);
    if (same == all.end())
      same = all.insert(all.end(), StageSummary{.description = stage.description, .counts = {}});
    ++same->runs;
    same->counts += stage.counts;
    same->seconds += in_seconds(stage.end - stage.begin);
  }
  return all;
}

}  // namespace starling::program
