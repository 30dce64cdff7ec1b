#include "starling/tools/report/table.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

const TextTable table{{"barrier", "steps", "±"},
                      {{"bsp", "54", "0.5"}, {"pssp:s=4,beta=10", "366.5", "±1"}}};

TEST(Table, AlignsColumnsOfAnyLetters) {
  EXPECT_EQ(plain_text(table),
            "barrier           steps    ±\n"
            "bsp                  54  0.5\n"
            "pssp:s=4,beta=10  366.5   ±1\n");
}

TEST(Table, CsvQuotesCellsWithACommaOrAQuote) {
  EXPECT_EQ(csv_text(table), "barrier,steps,±\nbsp,54,0.5\n\"pssp:s=4,beta=10\",366.5,±1\n");
  EXPECT_EQ(csv_text({{"a \"b\""}}), "\"a \"\"b\"\"\"\n");
}

TEST(Table, MarkdownAlignsFiguresToTheRight) {
  EXPECT_EQ(markdown_text({{"a|b", "c"}, {{"1", "2"}}}),
            "| a\\|b | c |\n| --- | ---: |\n| 1 | 2 |\n");
}

TEST(Table, MarkdownKeepsTheLinesOfACellInOneRow) {
  EXPECT_EQ(markdown_text({{"a\nb\r\nc"}}), "| a<br>b<br>c |\n| --- |\n");
}

TEST(Table, HtmlEscapesMarkup) {
  EXPECT_EQ(html_text(TextTable{{"a"}, {{"<b> & \"c\""}}}),
            "<table>\n<thead>\n<tr><th>a</th></tr>\n</thead>\n<tbody>\n"
            "<tr><td>&lt;b&gt; &amp; &quot;c&quot;</td></tr>\n</tbody>\n</table>\n");
}

}  // namespace
}  // namespace starling::program
