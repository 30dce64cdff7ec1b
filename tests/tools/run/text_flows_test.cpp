/// The flows on text, compared with sequential code.
#include <cctype>
#include <functional>

#include "tests/tools/run/flow_runner.hpp"

namespace starling::program {
namespace {

bool is_letter(unsigned char c) { return std::isalnum(c) != 0 || c >= 0x80; }

/// Counts words one after the other.
Lines sequential_counts(const std::string& text) {
  std::map<std::string, std::uint64_t> counts;
  std::string word;
  for (const char c : text + "\n") {
    if (is_letter(static_cast<unsigned char>(c))) {
      word += c;
    } else if (!word.empty()) {
      ++counts[word];
      word.clear();
    }
  }
  std::vector<std::pair<std::string, std::uint64_t>> sorted{counts.begin(), counts.end()};
  std::ranges::stable_sort(sorted, std::greater<>{}, &decltype(sorted)::value_type::second);
  Lines lines;
  for (const auto& [counted, count] : sorted)
    lines.push_back(counted + "\t" + std::to_string(count));
  return lines;
}

/// Words of a skewed distribution, of which some are not ASCII, with LF and CR LF.
std::string generated_text(std::uint64_t seed, std::size_t words) {
  Random random{seed};
  std::string text;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t number = skewed(random, 4000);
    text += (number % 5 == 0 ? "слово" : number % 5 == 1 ? "Wort" : "w") + std::to_string(number);
    text += std::vector<std::string>{" ", "\n", "\r\n", ", ", "--"}[random.below(5)];
  }
  return text;
}

TEST(WordCountFlow, EqualsSequentialCode) {
  const Folder folder;
  const std::string first = generated_text(1, 60'000);
  const std::string second = generated_text(2, 3000) + "the end, without a newline";
  const std::string huge = [] {
    std::string line;
    for (int i = 0; i < 200'000; ++i) line += "huge" + std::to_string(i % 7) + " ";
    return line;
  }();
  const Lines files{put_file(folder, "a.txt", first), put_gzip(folder, "b.gz", second),
                    put_file(folder, "empty", ""), put_file(folder, "huge", huge)};
  const Lines expected = sequential_counts(first + "\n" + second + "\n" + huge);
  std::uint64_t spilled = 0;
  for_each_setup([&](const FlowSetup& setup) {
    const FlowOutcome ran = run_flow_on("wordcount", {}, files, setup);
    ASSERT_EQ(ran.error, "");
    EXPECT_EQ(ran.lines, expected);
    spilled += ran.spilled_bytes;
    const FlowOutcome top = run_flow_on("wordcount", {{"top", "10"}}, files, setup);
    EXPECT_EQ(top.lines, (Lines{expected.begin(), expected.begin() + 10}));
  });
  EXPECT_GT(spilled, 0U);
}

TEST(WordCountFlow, SplitsWordsByHandMadeCases) {
  const Folder folder;
  const auto count = [&](const std::string& text, const Options& options = {}) {
    const FlowOutcome ran = run_flow_on("wordcount", options, {put_file(folder, "t", text)});
    EXPECT_EQ(ran.error, "");
    return ran.lines;
  };
  EXPECT_EQ(count(""), Lines{});
  EXPECT_EQ(count("\n\r\n \t"), Lines{});
  EXPECT_EQ(count("one"), Lines{"one\t1"});
  EXPECT_EQ(count("don't Don't"), (Lines{"t\t2", "Don\t1", "don\t1"}));
  EXPECT_EQ(count("don't Don't", {{"", "ignore-case"}}), (Lines{"don\t2", "t\t2"}));
  EXPECT_EQ(count("don't, don't", {{"", "spaces"}}), (Lines{"don't\t1", "don't,\t1"}));
  EXPECT_EQ(count("Über über ÜBER"), (Lines{"ÜBER\t1", "Über\t1", "über\t1"}));
  EXPECT_EQ(count("a b a", {{"top", "1"}}), Lines{"a\t2"});
  EXPECT_EQ(count("a b a", {{"top", "9"}}), (Lines{"a\t2", "b\t1"}));
}

Lines generated_rows(std::uint64_t seed, std::size_t rows) {
  Random random{seed};
  Lines lines;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint64_t key = skewed(random, 300);
    lines.push_back((key % 2 == 0 ? "ключ" : "key") + std::to_string(key) + " " +
                    print_number(static_cast<double>(random.below(2000)) / 8 - 100) + " row" +
                    std::to_string(i));
  }
  return lines;
}

std::string text_of_lines(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(SortFlow, EqualsAStableSort) {
  const Folder folder;
  const Lines rows = generated_rows(3, 36'000);
  const Lines middle{rows.begin() + 12'000, rows.begin() + 24'000};
  const Lines files{put_file(folder, "a", text_of_lines({rows.begin(), rows.begin() + 12'000})),
                    put_gzip(folder, "b", text_of_lines(middle)), put_file(folder, "c", ""),
                    put_file(folder, "d", text_of_lines({rows.begin() + 24'000, rows.end()}))};
  const auto column = [](const std::string& line, std::size_t index) {
    return split_columns(line, Separator::space)[index];
  };
  const auto number = [&](const std::string& line) { return std::stod(column(line, 1)); };
  Lines whole = rows;
  std::ranges::stable_sort(whole);
  Lines by_text = rows;
  std::ranges::stable_sort(by_text, {}, [&](const auto& line) { return column(line, 0); });
  Lines by_number = rows;
  std::ranges::stable_sort(by_number, {}, number);
  Lines descending = rows;
  std::ranges::stable_sort(descending, std::greater<>{}, number);
  std::uint64_t spilled = 0;
  for_each_setup([&](const FlowSetup& setup) {
    const auto sort = [&](const Options& options) {
      FlowOutcome ran = run_flow_on("sort", options, files, setup);
      EXPECT_EQ(ran.error, "");
      spilled += ran.spilled_bytes;
      return ran.lines;
    };
    EXPECT_EQ(sort({}), whole);
    EXPECT_EQ(sort({{"column", "1"}}), by_text);
    EXPECT_EQ(sort({{"column", "2"}, {"", "numeric"}}), by_number);
    EXPECT_EQ(sort({{"column", "2"}, {"", "numeric"}, {"", "descending"}}), descending);
  });
  EXPECT_GT(spilled, 0U);
}

TEST(SortFlow, ReadsColumnsOfEachFormat) {
  const Folder folder;
  const std::string csv =
      put_file(folder, "t.csv", "name,\"size, cm\"\r\n\"b, c\",10\r\nа,9\r\n\"\"\"\",-1e2\r\n");
  EXPECT_EQ(
      run_flow_on("sort", {{"column", "size, cm"}, {"", "numeric"}, {"", "header"}}, {csv}).lines,
      (Lines{"\"\"\"\",-1e2", "а,9", "\"b, c\",10"}));
  EXPECT_EQ(run_flow_on("sort", {{"column", "2"}, {"", "header"}}, {csv}).lines,
            (Lines{"\"\"\"\",-1e2", "\"b, c\",10", "а,9"}));
  const std::string tsv = put_file(folder, "t.tsv", "b b\t1\n\t2\na\t3");
  EXPECT_EQ(run_flow_on("sort", {{"column", "1"}}, {tsv}).lines, (Lines{"\t2", "a\t3", "b b\t1"}));
  EXPECT_EQ(run_flow_on("sort", {}, {put_file(folder, "empty", "")}).lines, Lines{});
  EXPECT_EQ(run_flow_on("sort", {}, {put_file(folder, "one", "no newline")}).lines,
            Lines{"no newline"});
  const std::string long_line(3'000'000, 'x');
  EXPECT_EQ(run_flow_on("sort", {}, {put_file(folder, "long", "y\n" + long_line + "\na\n")},
                        {.memory_bytes = std::size_t{1} << 20U})
                .lines,
            (Lines{"a", long_line, "y"}));
}

/// A double rounds whole numbers above 2^53.
TEST(SortFlow, OrdersWholeNumbersOf64Bits) {
  const Folder folder;
  const std::string file =
      put_file(folder, "ids.txt",
               "9007199254740993\n9007199254740992\n-9007199254740993\n9.007199254740994e15\n"
               "1e19\n-9007199254740992\n+5\n4.5\n9223372036854775807\n9223372036854775806\n");
  const Lines ascending{"-9007199254740993",
                        "-9007199254740992",
                        "4.5",
                        "+5",
                        "9007199254740992",
                        "9007199254740993",
                        "9.007199254740994e15",
                        "9223372036854775806",
                        "9223372036854775807",
                        "1e19"};
  EXPECT_EQ(run_flow_on("sort", {{"", "numeric"}}, {file}).lines, ascending);
  EXPECT_EQ(run_flow_on("sort", {{"", "numeric"}, {"", "descending"}}, {file}).lines,
            (Lines{ascending.rbegin(), ascending.rend()}));
}

TEST(SortFlow, RefusesFilesWithOtherColumns) {
  const Folder folder;
  const std::string a = put_file(folder, "a.csv", "id,price\n1,30\n2,5\n");
  const std::string b = put_file(folder, "b.csv", "price,id\n10,2\n");
  const std::string tsv = put_file(folder, "c.tsv", "id\tprice\n3\t7\n");
  const std::string same = put_file(folder, "d.csv", "id,price\n3,7\n");
  const Options by_price{{"column", "price"}, {"", "numeric"}, {"", "header"}};
  EXPECT_EQ(run_flow_on("sort", by_price, {a, b}).error,
            b + ": its first line names other columns than that of " + a +
                "; valid: files with the same header");
  EXPECT_EQ(run_flow_on("sort", by_price, {a, tsv}).error,
            tsv + ": has other separators between columns, by its name, than " + a +
                "; valid: files of one kind, or --separator");
  EXPECT_EQ(run_flow_on("sort", by_price, {a, same}).lines, (Lines{"2,5", "3,7", "1,30"}));
  const std::string empty = put_file(folder, "empty.csv", "");
  EXPECT_EQ(run_flow_on("sort", by_price, {empty, a, same}).lines, (Lines{"2,5", "3,7", "1,30"}))
      << "an empty file names no columns, also as the first one";
  EXPECT_EQ(run_flow_on("sort", {}, {a, tsv}).error, "");
  const std::string none = path_of(folder, "none.csv");
  EXPECT_EQ(run_flow_on("sort", by_price, {none, a}).error, none + ": no such file");
}

TEST(SortFlow, NamesTheLineOfABadColumn) {
  const Folder folder;
  const std::string path = put_file(folder, "t", "a 1\nb nan\nc\nd inf\n\n");
  const auto error = [&](const Options& options, const std::string& content) {
    return run_flow_on("sort", options, {put_file(folder, "t", content)}).error;
  };
  const Options by_number{{"column", "2"}, {"", "numeric"}};
  const std::string valid = " is not a finite number; valid: numbers such as 17, -0.5 or 1e6";
  EXPECT_EQ(error(by_number, "a 1\nb nan\n"), path + ":2: column 2: 'nan'" + valid);
  EXPECT_EQ(error(by_number, "a -inf\n"), path + ":1: column 2: '-inf'" + valid);
  EXPECT_EQ(
      error(by_number, "a 1\n\nb 2x\n"),
      path + ":2: column 2 is missing: the line has 0 columns; valid: lines with that column");
  EXPECT_EQ(
      error({{"column", "3"}}, "a b c\nd e"),
      path + ":2: column 3 is missing: the line has 2 columns; valid: lines with that column");
  EXPECT_EQ(error({{"column", "0"}}, "a"),
            "--column: '0' is not the number of a column; valid: a whole number from 1, or with "
            "--header a name");
  EXPECT_EQ(error({{"column", "siez"}, {"", "header"}}, "size name\n1 2\n"),
            "--column: " + path +
                " has no column 'siez'; did you mean 'size'? valid: size, name, "
                "or a number from 1");
  EXPECT_EQ(error({{"separator", "comma"}, {"column", "1"}}, "a,b\n\"open,b\n")
                .substr(0, path.size() + 2),
            path + ":2");
  EXPECT_EQ(error({{"separator", "comma"}, {"column", "1"}}, "b,2\n\na,1\n"),
            path + ":2: the line is blank; valid: lines with columns");
  EXPECT_EQ(error({{"separator", ";"}}, "a"),
            "sort: separator=; is unknown; valid: comma, tab, space");
}

}  // namespace
}  // namespace starling::program
