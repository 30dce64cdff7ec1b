#include "starling/tools/train/html_report.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

using Numbers = ThinnedSeries<std::size_t>;

/// Returns the numbers from 0 to `count` - 1, thinned.
Numbers numbers(std::size_t count) {
  Numbers thinned;
  for (std::size_t i = 0; i < count; ++i) thinned.add(i);
  return thinned;
}

TEST(ThinnedPoints, KeepsAllPointsWhileThereAreFew) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{17}, Numbers::points_max}) {
    const auto points = numbers(count).points();
    ASSERT_EQ(points.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(points[i], i);
  }
}

TEST(ThinnedPoints, KeepsEvenlySpreadPointsAndTheLast) {
  for (const std::size_t count : {Numbers::points_max + 1, 3 * Numbers::points_max,
                                  std::size_t{10'000}, std::size_t{123'457}}) {
    const Numbers thinned = numbers(count);
    const auto points = thinned.points();
    EXPECT_EQ(thinned.count(), count);
    EXPECT_LE(points.size(), Numbers::points_max + 1) << count;
    EXPECT_GE(points.size(), Numbers::points_max / 2) << count;
    EXPECT_EQ(points.back(), count - 1);
    for (std::size_t i = 0; i + 1 < points.size(); ++i)
      EXPECT_EQ(points[i], i * thinned.stride()) << count;
  }
}

/// Returns the progress of a job of two workers after `second` seconds.
actor::Progress at(int second, std::uint64_t updates) {
  actor::Progress progress;
  progress.elapsed = std::chrono::seconds{second};
  progress.updates = updates;
  progress.spread = {updates / 2, updates / 2, updates / 2 + 1};
  progress.loss = 1.0 / (1 + second);
  progress.waiting_share = 0.25;
  progress.draws = updates;
  progress.passes = updates / 2;
  progress.test = {{"loss", 0.5}, {"accuracy", 0.75}};
  progress.evaluated_at = static_cast<double>(updates) / 2;
  return progress;
}

ResolvedJob resolved_job(const char* barrier, std::size_t workers) {
  ResolvedJob job;
  job.model = "softmax";
  job.data = "<digits>";
  job.options.job.barrier = barrier::parse(barrier).value();
  job.options.job.workers = workers;
  job.options.job.steps = 100;
  return job;
}

std::vector<std::string> names(const std::vector<Plot>& plots) {
  std::vector<std::string> found;
  for (const Plot& plot : plots) found.push_back(plot.name);
  return found;
}

/// Returns the curves of a job that made 10 updates a second.
Curves curves(int seconds) {
  Curves all;
  for (int second = 0; second < seconds; ++second) {
    all.add_progress(at(second, 10 * static_cast<std::uint64_t>(second)), 2, 0);
    all.add_evaluation(at(second, 10));
  }
  return all;
}

TEST(ReportPlots, ContainOnlyPlotsWithFigures) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(report_plots(resolved_job("pbsp:beta=1", 2), curves(3))),
            (Names{"loss", "test-figure-1", "steps", "spread", "waiting", "draws"}));
  EXPECT_EQ(names(report_plots(resolved_job("bsp", 2), curves(3))),
            (Names{"loss", "test-figure-1", "steps", "spread", "waiting"}));
  EXPECT_EQ(names(report_plots(resolved_job("asp", 1), curves(3))),
            (Names{"loss", "test-figure-1", "steps"}));
  EXPECT_EQ(names(report_plots(resolved_job("bsp", 2), {})), Names{});
}

TEST(ReportPlots, ShowTheDrawsThatMadeAWorkerWait) {
  const auto plots = report_plots(resolved_job("pbsp:beta=1", 2), curves(3));
  const Plot& draws = plots.back();
  ASSERT_EQ(draws.series.size(), 2U);
  EXPECT_EQ(draws.series[0].points.back().y, 10);
  EXPECT_EQ(draws.series[1].points.back().y, 10);
  EXPECT_EQ(draws.x, "time since the start (s)");
}

TEST(ReportPlots, LeaveOutFiguresBeforeTheFirstUpdate) {
  const auto plots = report_plots(resolved_job("bsp", 2), curves(3));
  EXPECT_EQ(plots[0].series[0].points.size(), 2U) << "the loss at 0 updates";
  EXPECT_EQ(plots[2].series[0].points.size(), 3U) << "the steps";
}

TEST(ReportPlots, ShowLongJobsInMinutesAndHours) {
  EXPECT_EQ(report_plots(resolved_job("bsp", 2), curves(400)).back().x,
            "time since the start (min)");
  Curves day;
  day.add_progress(at(86'400, 10), 2, 0);
  const auto plots = report_plots(resolved_job("bsp", 2), day);
  EXPECT_EQ(plots.back().x, "time since the start (h)");
  EXPECT_EQ(plots.back().series[0].points[0].x, 24);
}

TEST(ReportPlots, UseALogarithmicAxisIfTheLossFallsFar) {
  EXPECT_FALSE(report_plots(resolved_job("bsp", 2), curves(10))[0].log_y);
  EXPECT_TRUE(report_plots(resolved_job("bsp", 2), curves(200))[0].log_y);
}

TEST(ReportPage, HasNotesSettingsAndFigures) {
  const ResolvedJob job = resolved_job("bsp", 2);
  const actor::Outcome outcome;
  Curves with_warning = curves(2);
  with_warning.add_warning("node b is dead");
  const EndedJob ended{
      .job = job, .outcome = outcome, .advice = {"try more"}, .error = "it <failed>"};
  const std::string page = html_text(report_page(ended, with_warning));
  for (const char* part :
       {"<h1>softmax on &lt;digits&gt;</h1>", "<p>The job failed: it &lt;failed&gt;</p>",
        "<p>try more</p>", "<p>node b is dead</p>", "<td>barrier</td><td>bsp</td>",
        "<td>steps</td><td>100 of each worker</td>", "<td>end</td>", "<td>processor</td>",
        "<summary>Progress (2)</summary>", "<th>test_accuracy</th>", "<td>0.75</td>"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\nis not in\n" << page;
}

}  // namespace
}  // namespace starling::program
