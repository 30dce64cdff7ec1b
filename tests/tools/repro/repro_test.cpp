/// `starling repro psp`, run as a program.
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "starling/tools/report/plot.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// Returns how often `part` occurs in `text`.
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

const std::vector<std::string>& sections() {
  static const std::vector<std::string> headings{"Published and here",
                                                 "How far the workers come",
                                                 "What the sample size does",
                                                 "What happens over time",
                                                 "How many stragglers",
                                                 "How slow the stragglers are",
                                                 "How many workers",
                                                 "What the updates are worth",
                                                 "What theory says of the lag",
                                                 "When a waiting worker draws again",
                                                 "How this was made"};
  return headings;
}

/// Returns the attributes by which a page would load another file. References inside the page (#ID)
/// and the names of XML namespaces do not count.
std::vector<std::string> references(const std::string& html) {
  std::vector<std::string> found;
  const std::regex link{
      R"((?:src|href|srcset|data|action)\s*=\s*["']?([^"'\s>]+)|url\(([^)]+)\)|@import)"};
  for (auto at = std::sregex_iterator{html.begin(), html.end(), link}; at != std::sregex_iterator{};
       ++at)
    if (!(*at)[1].str().starts_with('#')) found.push_back(at->str());
  return found;
}

// One test checks everything in the report, because a run takes long.
TEST(ReproPsp, MakesACompleteReportWithItsData) {
  const Folder folder;
  const ProgramResult ran =
      starling(folder, "repro psp --quick --quiet --out report.html --data data --markdown page");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "report  report.html\ndata    data\npage    page/repro-psp.md\n");
  const std::string html = folder.read("report.html");
  const std::string page = folder.read("page/repro-psp.md");
  for (const auto& section : sections()) {
    EXPECT_EQ(count(html, "<h2>" + section + "</h2>"), 1U) << section;
    EXPECT_EQ(count(page, "\n## " + section + "\n"), 1U) << section;
  }
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  for (const auto& reference : references(html)) ADD_FAILURE() << "loads " << reference;
  EXPECT_EQ(html.find("<script"), std::string::npos);

  const Json summary = Json::parse(folder.read("data/summary.json"));
  EXPECT_EQ(summary["seeds"], 2);
  ASSERT_GE(summary["claims"].size(), 20U);
  EXPECT_EQ(count(folder.read("data/claims.csv"), "\n"), summary["claims"].size() + 1);
  for (const Json& claim : summary["claims"]) {
    EXPECT_FALSE(claim["here"].get<std::string>().empty()) << claim;
    // Two seeds are enough to reproduce these claims.
    const auto finding = claim["what"].get<std::string>();
    if (finding.starts_with("Smallest bound") || finding.starts_with("Progress") ||
        finding.starts_with("5 % stragglers")) {
      EXPECT_EQ(claim["verdict"], "reproduced") << claim;
    }
  }
  EXPECT_EQ(count(folder.read("data/runs.csv"), "\n"), 2 * summary["settings"].size() + 1);
  EXPECT_EQ(count(folder.read("data/learning.csv"), "\n"), 2U * 5 * 3 + 1);

  if (!has_gnuplot()) GTEST_SKIP() << "gnuplot is not installed: no pictures to look at";
  const std::size_t pictures = count(html, "<figure ");
  EXPECT_GE(pictures, 12U);
  EXPECT_EQ(count(html, "<svg"), pictures);
  EXPECT_EQ(count(page, "](pictures/"), pictures);
  const std::regex name{R"(\]\((pictures/[a-z-]+\.svg)\))"};
  for (auto at = std::sregex_iterator{page.begin(), page.end(), name}; at != std::sregex_iterator{};
       ++at)
    EXPECT_NE(folder.read("page/" + (*at)[1].str()).find("</svg>"), std::string::npos) << at->str();
  const std::regex id{R"(\bid=["']([^"']+)["'])"};
  std::map<std::string, int> ids;
  for (auto at = std::sregex_iterator{html.begin(), html.end(), id}; at != std::sregex_iterator{};
       ++at)
    EXPECT_EQ(++ids[(*at)[1].str()], 1) << "two pictures have " << at->str();
}

}  // namespace
}  // namespace starling::program
