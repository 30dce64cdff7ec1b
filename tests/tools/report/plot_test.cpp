#include "starling/tools/report/plot.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace starling::program {
namespace {

Plot small_plot(PlotStyle style) {
  Plot plot{.name = "small-plot", .title = "A \"small\" plot", .x = "x", .y = "y", .style = style};
  plot.series = {{"pbsp_beta", {{0, 1, 0.5}, {1, 2.25, 0.5}}}, {"asp", {{0, 3, 0}, {1, 4, 0}}}};
  if (style == PlotStyle::stacked) plot.labels = {"one", "two"};
  return plot;
}

TEST(PlotText, HasEachSeriesAsABlockOfItsOwn) {
  EXPECT_EQ(plot_data(small_plot(PlotStyle::line)),
            "# pbsp_beta\n0 1 0.5\n1 2.25 0.5\n\n\n# asp\n0 3 0\n1 4 0\n");
}

TEST(PlotText, ScriptNamesItsFilesAndQuotesLabels) {
  const std::string script = plot_script(small_plot(PlotStyle::points));
  for (const char* part :
       {"set output \"small-plot.svg\"", "\"small-plot.dat\" index 1", "yerrorlines",
        "set title \"A \\\"small\\\" plot\"", "title \"pbsp_beta\""})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\nis not in\n" << script;
}

TEST(PlotText, PutsPercentOnTheAxisOfAShare) {
  Plot plot = small_plot(PlotStyle::line);
  plot.is_share = true;
  EXPECT_NE(plot_script(plot).find("using 1:($2*100)"), std::string::npos) << plot_script(plot);
  EXPECT_EQ(plot_data(plot), plot_data(small_plot(PlotStyle::line)));
}

TEST(PlotText, LeavesSpaceForTheLegendAboveAllValues) {
  const auto top = [](const Plot& plot) {
    const std::string script = plot_script(plot);
    const auto range = script.find("set yrange [0:");
    return std::stod(script.substr(range + 14));
  };
  Plot plot = small_plot(PlotStyle::line);
  EXPECT_GT(top(plot), 4);
  const double one_row = top(plot);
  for (int i = 0; i < 30; ++i) plot.series.push_back({"one of many series", {{0, 1}}});
  EXPECT_GT(top(plot), 1.3 * one_row);
  for (auto& series : plot.series) series.name = "";
  EXPECT_NE(plot_script(plot).find("unset key"), std::string::npos);
}

TEST(PlotText, HasOnePanelForEachSeries) {
  Plot plot = small_plot(PlotStyle::line);
  plot.has_panels = true;
  const std::string script = plot_script(plot);
  std::size_t panels = 0;
  for (auto at = script.find("\nplot "); at != std::string::npos;
       at = script.find("\nplot ", at + 1))
    ++panels;
  EXPECT_EQ(panels, 2U) << script;
  EXPECT_NE(script.find("set label 3 \"pbsp_beta\""), std::string::npos);
}

TEST(PlotText, MarksTheValuesOfAShortCurve) {
  Plot plot = small_plot(PlotStyle::line);
  plot.series.resize(1);
  EXPECT_NE(plot_script(plot).find("with linespoints"), std::string::npos);
  plot.series[0].points.assign(1000, {1, 1});
  EXPECT_EQ(plot_script(plot).find("with linespoints"), std::string::npos);
}

/// The plots have empty ranges and values that are not finite.
TEST(OddPlot, IsDrawn) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<PlotPoint>& points : {std::vector<PlotPoint>{{0, 0}},
                                               {{5, 0}},
                                               {{0, 1e30}, {1, 1e30}},
                                               {{0, nan}, {1, 2}},
                                               {{0, infinity}, {1, 2}},
                                               {{0, -5}, {1, -2}},
                                               {{0, nan}}})
    for (const bool has_panels : {false, true})
      for (const bool is_zoomed : {false, true}) {
        Plot plot = small_plot(PlotStyle::line);
        plot.series = {{"one", points}};
        plot.has_panels = has_panels;
        plot.is_zoomed = is_zoomed;
        const auto svg = draw(plot);
        EXPECT_TRUE(svg) << svg.error().message << "\n" << plot_script(plot);
      }
}

class DrawnPlot : public testing::TestWithParam<PlotStyle> {};

TEST_P(DrawnPlot, IsSvgAndTheSameEachTime) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  const auto svg = draw(small_plot(GetParam()));
  ASSERT_TRUE(svg) << svg.error().message;
  EXPECT_NE(svg->find("<svg"), std::string::npos);
  EXPECT_TRUE(svg->ends_with("</svg>\n") || svg->ends_with("</svg>\n\n"))
      << svg->substr(svg->size() - 30);
  for (const char* part : {"pbsp_beta", "asp", "A \"small\" plot"})
    EXPECT_NE(svg->find(part), std::string::npos) << part;
  EXPECT_EQ(draw(small_plot(GetParam())).value(), *svg);
}

INSTANTIATE_TEST_SUITE_P(Styles, DrawnPlot,
                         testing::Values(PlotStyle::line, PlotStyle::steps, PlotStyle::points,
                                         PlotStyle::stacked));

TEST(EmptyPlot, SaysThatThereIsNothingToShow) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  for (const auto style : {PlotStyle::line, PlotStyle::stacked})
    for (const std::vector<Series>& series :
         {std::vector<Series>{}, std::vector<Series>{{"nothing", {}}}}) {
      Plot empty = small_plot(style);
      empty.series = series;
      const auto svg = draw(empty);
      ASSERT_TRUE(svg) << svg.error().message;
      EXPECT_NE(svg->find("nothing to show"), std::string::npos);
    }
}

TEST(FailedPlot, ReportsTheMessageOfGnuplot) {
  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed";
  Plot broken = small_plot(PlotStyle::line);
  broken.log_x = true;
  broken.series = {{"below zero", {{-1, 1}}}};
  const auto svg = draw(broken);
  ASSERT_FALSE(svg);
  EXPECT_NE(svg.error().message.find("gnuplot could not draw small-plot"), std::string::npos)
      << svg.error().message;
}

}  // namespace
}  // namespace starling::program
