#include "starling/app/sim/plot.hpp"

#include <gtest/gtest.h>

namespace starling::app {
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

TEST(PlotText, OfAScriptNamesItsFilesAndQuotesWhatPeopleRead) {
  const std::string script = plot_script(small_plot(PlotStyle::points));
  for (const char* part :
       {"set output \"small-plot.svg\"", "\"small-plot.dat\" index 1", "yerrorlines",
        "set title \"A \\\"small\\\" plot\"", "title \"pbsp_beta\""})
    EXPECT_NE(script.find(part), std::string::npos) << part << "\nis not in\n" << script;
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

TEST(FailedPlot, SaysWhatGnuplotSaid) {
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
}  // namespace starling::app
