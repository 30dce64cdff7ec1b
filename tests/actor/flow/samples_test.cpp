/// Sets of samples: from data sources, and to tables.
#include <atomic>
#include <cmath>
#include <limits>

#include "starling/actor/flow/sample_table.hpp"
#include "starling/actor/flow/samples.hpp"
#include "tests/actor/flow/flow_cases.hpp"
#include "tests/models/data/files.hpp"
#include "tests/models/data/numpy.hpp"
#include "tests/models/data/pictures.hpp"

namespace starling::flow {
namespace {

using models::Table;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Expects two tables with equal rows and labels. Only what a model reads is compared.
void expect_equal(const Table& a, const Table& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.features(), b.features());
  EXPECT_EQ(a.classes(), b.classes());
  ASSERT_EQ(a.is_sparse(), b.is_sparse());
  for (std::size_t row = 0; row < a.size(); ++row) {
    EXPECT_EQ(a.label(row), b.label(row)) << "row " << row;
    if (a.is_sparse()) {
      EXPECT_TRUE(std::ranges::equal(a.sparse_row(row).columns, b.sparse_row(row).columns));
      EXPECT_TRUE(std::ranges::equal(a.sparse_row(row).values, b.sparse_row(row).values));
    } else {
      EXPECT_TRUE(std::ranges::equal(a.dense_row(row), b.dense_row(row))) << "row " << row;
    }
  }
}

/// Returns an IDX file of bytes with the given sizes, each below 256.
std::string small_idx(const std::vector<char>& sizes, const std::string& data) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const char size : sizes) bytes += std::string(3, '\0') + size;
  return bytes + data;
}

/// Writes a file of each format, and returns the sources that name them.
std::vector<std::string> write_sources(const models::TemporaryFolder& folder) {
  const auto path = [&](const char* name, const std::string& content) {
    return folder.write(name, content);
  };
  std::filesystem::create_directory(folder.path("pictures"));
  for (const char* kind : {"cat", "dog", "emu"}) {
    std::filesystem::create_directory(folder.path(std::string{"pictures/"} + kind));
    path((std::string{"pictures/"} + kind + "/a.png").c_str(),
         models::png_of(1, 2, {static_cast<unsigned char>(kind[0]), 7}));
  }
  const std::string pixels = models::npy("<f4", "3, 2", models::little<float>({1, 2, 3, 4, 5, 6}));
  const std::string classes = models::npy("<i8", "3,", models::little<std::int64_t>({2, 1, 3}));
  return {
      "csv:" + path("text.csv", "a,b,kind\n1,2.5,x\n-3,4,y\n0,1e-7,x\n"),
      "csv:" + path("signed.csv", "0.5,-1\n1.5,1\n2.5,-1\n"),
      "csv:" + path("holes.csv", "a,b\n1,7.5\n,8.5\n3,9.25\n") + ",missing=mean",
      "idx:" +
          path("images", small_idx({3, 2, 2}, std::string("\0\x33\xff\1\2\3\4\5\6\7\x08\t", 12))) +
          "," + path("labels", small_idx({3}, std::string("\0\2\1", 3))),
      "cifar10:" + path("cifar", std::string(1, '\3') + std::string(3072, '\x11')),
      "npy:" + path("x.npy", pixels) + "," + path("y.npy", classes),
      "npz:" + path("xy.npz", models::zip_of({{"x.npy", pixels}, {"y.npy", classes}})),
      "images:" + folder.path("pictures"),
      "digits:n=40",
      "linear:d=6,n=50",
      "ratings:users=5,items=4,rank=2,n=30"};
}

TEST(Samples, EverySourceGivesTheRowsOfItsTable) {
  const models::TemporaryFolder folder;
  for (const std::string& source : write_sources(folder)) {
    SCOPED_TRACE(source);
    const Table table = models::load_text(source, 3).value();
    for (const std::size_t threads : {1, 5}) {
      const auto engine = make_engine(threads, static_cast<Part>(2 * threads));
      const auto found = samples(engine, source, 3);
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_EQ(found->parts(), 2 * threads);
      const auto all = found->collect().value();
      ASSERT_EQ(all.size(), table.size());
      for (std::size_t row = 0; row < all.size(); ++row) {
        EXPECT_EQ(all[row].label, table.labelling.original(table.label(row)));
        ASSERT_EQ(all[row].features.size(), table.features());
        for (std::size_t j = 0; j < table.features(); ++j) {
          const float value = table.dense_row(row)[j];
          EXPECT_EQ(all[row].features[j], std::isnan(value) ? 2 : value);  // the mean of 1 and 3
        }
      }
      // The format of CIFAR-10 says that there are 10 classes, which one sample cannot say.
      if (!source.starts_with("cifar10") && !source.ends_with("mean"))
        expect_equal(to_table(*found).value(), table);
    }
  }
}

TEST(Samples, SparseSourcesGiveTheStoredEntries) {
  const models::TemporaryFolder folder;
  const std::string source =
      "libsvm:" + folder.write("a.svm", "1 1:0.5 7:2\n2\n1 2:-1 3:4 9:1\n3 9:8\n");
  const Table table = models::load_text(source).value();
  for (const std::size_t threads : {1, 3}) {
    const auto engine = make_engine(threads);
    const auto found = sparse_samples(engine, source).value();
    EXPECT_EQ(found.take(1).value(), (std::vector<SparseSample>{{{0, 6}, {0.5F, 2}, 1}}));
    expect_equal(to_table(found).value(), table);
    EXPECT_EQ(samples(engine, source).error().message,
              source + ": is sparse; valid: sparse_samples()");
    EXPECT_EQ(sparse_samples(engine, "digits:n=3").error().message,
              "digits:n=3: is dense; valid: samples()");
  }
}

TEST(Samples, SourcesThatCannotBeLoadedAreErrors) {
  const auto engine = make_engine(1);
  EXPECT_NE(samples(engine, "csv:none.csv").error().message.find("none.csv: no such file"),
            std::string::npos);
  EXPECT_NE(samples(engine, "cvs:none.csv").error().message.find("csv"), std::string::npos);
}

TEST(Samples, ErrorsNameTheSourceAndTheRecord) {
  // With more threads, a later record may fail twice first.
  const auto set = samples(make_engine(1), "digits:n=40").value();
  const auto refuse = [](const Sample& sample) {
    if (sample.label == 7) throw std::runtime_error{"a seven"};
    return sample;
  };
  const Table table = models::load_text("digits:n=40").value();
  std::size_t first = 0;
  while (table.label(first) != 7) ++first;
  EXPECT_EQ(set.map(refuse).count().error().message,
            "digits:n=40: record " + std::to_string(first) + ": a seven");
}

TEST(ToTable, ComputesEachSampleOnce) {
  std::atomic<std::uint64_t> calls = 0;
  const auto set = make_engine(3).generate(500, [&calls](std::uint64_t i) {
    ++calls;
    return Sample{{static_cast<float>(i), 1}, static_cast<float>(i % 3)};
  });
  const Table table = to_table(set).value();
  EXPECT_EQ(calls, 500U);
  EXPECT_EQ(table.size(), 500U);
  EXPECT_EQ(table.classes(), 3U);
  EXPECT_EQ(table.dense_row(77)[0], 77);
}

TEST(ToTable, TheCallerMaySayWhatLabelsMean) {
  const auto engine = make_engine(2);
  const auto set = engine.collection(std::vector<Sample>{{{1}, 1}, {{2}, 2}, {{3}, 4}});
  EXPECT_EQ(to_table(set).value().classes(), 0U);  // the class 3 is missing
  EXPECT_EQ(to_table(set, {.task = models::LabelKind::classes}).value().classes(), 4U);
  const auto classes =
      to_table(set, {.labelling = models::Labelling{.classes = 7, .first_label = 1}}).value();
  EXPECT_EQ(classes.classes(), 7U);
  EXPECT_EQ(classes.label(2), 3);
}

/// Returns the error of making a table of these samples, which are `parts` parts.
std::string error_of(std::vector<Sample> samples, const TableOptions& options = {},
                     Part parts = 1) {
  const auto table = to_table(make_engine(2, parts).collection(std::move(samples)), options);
  return table ? "no error" : table.error().message;
}

TEST(ToTable, RefusesSamplesThatCannotBeRows) {
  EXPECT_EQ(error_of({}), "the set has no samples; valid: at least one");
  EXPECT_EQ(error_of({{{}, 1}}),
            "collection: record 0: the sample has no features; valid: at least one");
  EXPECT_EQ(error_of({{{1, 2}, 0}, {{3, 4}, 1}, {{5}, 1}}),
            "collection: record 2: the sample has 1 feature; valid: 2, as the samples before it "
            "have");
  EXPECT_EQ(error_of({{{1, 2}, 0}, {{3}, 1}}, {}, 2),
            "to_table: part 1, record 0: has 1 feature, but part 0, record 0, has 2; valid: the "
            "same number in all samples");
  EXPECT_EQ(error_of({{{1, not_a_number}, 0}}),
            "collection: record 0: features[1] is nan; valid: a finite number");
  EXPECT_EQ(error_of({{{1}, 0}, {{-INFINITY}, 0}}),
            "collection: record 1: features[0] is -inf; valid: a finite number");
  EXPECT_EQ(error_of({{{1}, 0}, {{2}, not_a_number}}),
            "collection: record 1: the label is nan; valid: a finite number");
}

TEST(ToTable, RefusesLabelsThatAreNoClasses) {
  const Table train = to_table(make_engine(1).collection(
                                   std::vector<Sample>{{{1, 2}, 1}, {{3, 4}, 2}, {{3, 4}, 3}}))
                          .value();
  const auto test_options = TableOptions::like(train);
  EXPECT_EQ(error_of({{{1, 2}, 3}}, test_options), "no error");
  EXPECT_EQ(error_of({{{1, 2}, 3}, {{1, 2}, 4}}, test_options),
            "collection: record 1: the label 4 is not a class; valid: whole numbers 1 to 3");
  EXPECT_EQ(error_of({{{1, 2, 3}, 3}}, test_options),
            "collection: record 0: the sample has 3 features; valid: 2");
  EXPECT_EQ(error_of({{{1}, 0}, {{2}, 1.5F}}, {.task = models::LabelKind::classes}),
            "samples: label 1.5 of record 2 is not a class; valid: whole numbers 0..k-1 or 1..k "
            "with k <= 1000000, or -1 and +1 throughout");
}

TEST(ToTable, TakesLabelsAsIndicesOfTheNamesOfClasses) {
  const std::vector<Sample> samples{{{1, 2}, 0}, {{3, 4}, 1}};
  Table train = to_table(make_engine(1).collection(samples)).value();
  for (const auto& names : {std::vector<std::string>{"cat", "dog"}, {"2", "4"}}) {
    train.labelling.names = names;
    const auto test = to_table(make_engine(1).collection(samples), TableOptions::like(train));
    ASSERT_TRUE(test) << test.error().message;
    EXPECT_EQ(test->label(0), 0);
    EXPECT_EQ(test->label(1), 1);
  }
}

TEST(ToTable, RefusesSparseSamplesThatCannotBeRows) {
  const auto error = [](std::vector<SparseSample> samples, const TableOptions& options = {}) {
    const auto table = to_table(make_engine(2, 1).collection(std::move(samples)), options);
    return table ? "no error" : table.error().message;
  };
  EXPECT_EQ(error({}), "the set has no samples; valid: at least one");
  EXPECT_EQ(error({{{}, {}, 0}}),
            "no sample has a feature; valid: at least one column in a sample");
  EXPECT_EQ(error({{{1}, {2, 3}, 0}}),
            "collection: record 0: the sample has 1 column and 2 values; valid: as many of both");
  EXPECT_EQ(error({{{1, 1}, {2, 3}, 0}}),
            "collection: record 0: columns[1] is 1 and the one before it 1; valid: columns that "
            "ascend");
  EXPECT_EQ(error({{{1, 5}, {2, 3}, 0}}, {.features = 5}),
            "collection: record 0: columns[1] is 5; valid: 0 to 4");
  EXPECT_EQ(error({{{1}, {not_a_number}, 0}}),
            "collection: record 0: values[0] is nan; valid: a finite number");
}

TEST(ToTable, ErrorsNameTheLineOfATextFile) {
  const models::TemporaryFolder folder;
  const auto path = folder.write("features.csv", "1 2\n3 4\nnan 5\n");
  const auto lines = make_engine(3).text({path}).value();
  const auto parse = [](const std::string& line) {
    return Sample{{std::stof(line)}, std::stof(line.substr(line.find(' ')))};
  };
  EXPECT_EQ(to_table(Set<std::string>{lines}.map(parse)).error().message,
            path + ":3: features[0] is nan; valid: a finite number");
}

}  // namespace
}  // namespace starling::flow
