#include "starling/tools/report/document.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

const std::string svg =
    "<?xml version=\"1.0\"?>\n<svg><path id='gpPt0'/><use xlink:href='#gpPt0'/></svg>\n";

const Document document{"A <report>",
                        {{"First",
                          {Paragraph{"5 < 6 & *so*"}, TextTable{{"a", "b"}, {{"1", "2"}}},
                           Picture{"one", "the first", svg}, Picture{"two", "the second", svg}}},
                         {"Second", {Picture{"none", "not drawn", ""}}}}};

TEST(Report, HtmlPicturesHaveDistinctIds) {
  const std::string html = html_text(document);
  for (const char* part :
       {"<title>A &lt;report&gt;</title>", "<h2>First</h2>", "<p>5 &lt; 6 &amp; *so*</p>",
        "<td>2</td>", "id='one-gpPt0'", "'#one-gpPt0'", "id='two-gpPt0'", "'#two-gpPt0'",
        "gnuplot is needed; its data is in none.dat"})
    EXPECT_NE(html.find(part), std::string::npos) << part << "\nis not in\n" << html;
  EXPECT_EQ(html.find("<?xml"), std::string::npos);
  EXPECT_TRUE(html.ends_with("</html>\n"));
}

TEST(Report, FoldsLongTablesAndPutsAGallerySideBySide) {
  const Document folded{"t",
                        {{.title = "g", .blocks = {Picture{"one", "", svg}}, .is_gallery = true},
                         {"all", {FoldedTable{"rows", "2 < 3", TextTable{{"a"}, {{"1"}}}}}}}};
  const std::string html = html_text(folded);
  for (const char* part : {"<section class=\"gallery\">\n<h2>g</h2>", "<details id=\"rows\">",
                           "<summary>2 &lt; 3</summary>\n<table>"})
    EXPECT_NE(html.find(part), std::string::npos) << part << "\nis not in\n" << html;
  EXPECT_EQ(html.find("<figcaption>"), std::string::npos);
  EXPECT_NE(markdown_text(folded, "p").find("2 \\< 3\n\n| a |\n"), std::string::npos);
}

TEST(Report, MarkdownLinksItsPictures) {
  EXPECT_EQ(
      markdown_text(document, "pictures"),
      "# A <report>\n\n## First\n\n5 \\< 6 & \\*so\\*\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n\n"
      "![the first](pictures/one.svg)\n\n![the second](pictures/two.svg)\n\n## Second\n\n"
      "not drawn\n");
}

}  // namespace
}  // namespace starling::program
