#include "starling/models/data/load.hpp"

#include <algorithm>

#include "starling/base/input.hpp"
#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/readers.hpp"
#include "starling/models/data/generators/generators.hpp"
#include "starling/models/data/source/raw_table.hpp"

namespace starling::models {
namespace {

/// Is mixed into the job's seed, so that data generators and other users of the seed draw different
/// random numbers. The bytes spell "data".
constexpr std::uint64_t data_stream = 0x64617461;

/// Returns the number of bytes that a generator allocates for its table and its true parameters; 0
/// for files, because their readers limit their own memory.
struct GeneratedBytes {
  std::uint64_t operator()(const DigitsSource& s) const { return 4 * s.n * (28 * 28 + 1); }
  std::uint64_t operator()(const LinearSource& s) const { return 4 * (s.n + 1) * (s.d + 1); }
  std::uint64_t operator()(const RatingsSource& s) const {
    return 4 * (3 * s.n + (s.users + s.items) * s.rank);
  }
  std::uint64_t operator()(const auto& /*files*/) const { return 0; }
};

/// Reads the files of `source`, or generates its rows. Refuses a table that would take too much
/// memory.
Result<RawTable> read_raw(const Source& source, std::uint64_t seed, Part part) {
  if (const auto bytes = std::visit(GeneratedBytes{}, source.kind))
    if (auto fits = ReadBudget{source.print()}.check_total(bytes); !fits)
      return std::move(fits).error();
  struct Reader {
    std::uint64_t seed;
    Part part;
    Result<RawTable> operator()(const IdxSource& s) const { return read_idx(s); }
    Result<RawTable> operator()(const Cifar10Source& s) const { return read_cifar10(s); }
    Result<RawTable> operator()(const CsvSource& s) const { return read_csv(s); }
    Result<RawTable> operator()(const LibsvmSource& s) const { return read_libsvm(s); }
    Result<RawTable> operator()(const NpySource& s) const { return read_npy(s); }
    Result<RawTable> operator()(const NpzSource& s) const {
      return read_npz(s, part == Part::test);
    }
    Result<RawTable> operator()(const ImagesSource& s) const { return read_images(s); }
    Result<RawTable> operator()(const DigitsSource& s) const { return make_digits(s, seed, part); }
    Result<RawTable> operator()(const LinearSource& s) const { return make_linear(s, seed, part); }
    Result<RawTable> operator()(const RatingsSource& s) const {
      return make_ratings(s, seed, part);
    }
  };
  auto raw = std::visit(Reader{mix(seed ^ data_stream), part}, source.kind);
  if (raw && raw->source.empty()) raw->source = source.print();
  return raw;
}

bool is_sparse(const RawTable& raw) { return std::holds_alternative<Table::Sparse>(raw.x); }

/// Refuses generated test ratings if their random matrix differs from that of the training ratings:
/// the users, items and rank of both sources must be equal.
Result<void> check_same_ratings_matrix(const Source& train, const Source& test) {
  const auto* train_ratings = std::get_if<RatingsSource>(&train.kind);
  const auto* test_ratings = std::get_if<RatingsSource>(&test.kind);
  if (train_ratings == nullptr || test_ratings == nullptr) return {};
  if (train_ratings->users == test_ratings->users && train_ratings->items == test_ratings->items &&
      train_ratings->rank == test_ratings->rank)
    return {};
  return Error{test.print() + " does not test " + train.print() +
               ": users, items and rank must be the same"};
}

/// Gives two sparse tables the same number of features. Refuses one sparse and one dense table, and
/// dense tables with different numbers of features.
Result<void> match_features(RawTable& train, RawTable& test) {
  if (is_sparse(train) != is_sparse(test))
    return Error{test.source + ": is " + (is_sparse(test) ? "sparse" : "dense") + ", but " +
                 train.source + " is " + (is_sparse(train) ? "sparse" : "dense")};
  if (is_sparse(train)) train.features = test.features = std::max(train.features, test.features);
  if (train.features == test.features) return {};
  return Error{test.source + ": has " + std::to_string(test.features) + " features, but " +
               train.source + " has " + std::to_string(train.features)};
}

/// Refuses test data with real targets if the training data have classes, and the reverse.
/// `labelling` is the training data's. Accepts test data whose kind of labels is not known.
Result<void> check_task(const RawTable& test, const RawTable& train, const Labelling& labelling) {
  const bool is_known = test.task.has_value() || test.labelling.has_value();
  const bool has_values =
      test.labelling ? test.labelling->classes == 0 : test.task == std::optional{LabelKind::values};
  if (!is_known || has_values == (labelling.classes == 0)) return {};
  return Error{test.source + ": has " + (has_values ? "real targets" : "classes") + ", but " +
               train.source + " has " + (has_values ? "classes" : "real targets")};
}

/// Fills in the options that the user left out of a LIBSVM test source: features=N as the training
/// source has it, and base=0|1 as the training data have it. Also sets its training_features.
void inherit(const LibsvmSource& train, const RawTable& raw, LibsvmSource& test) {
  if (test.features == 0) test.features = train.features;
  test.training_features = raw.features;
  if (test.base) return;
  test.base = raw.first_index;
  test.base_decided_by = train.file;
}

/// Makes the reader of a CSV test file expect the columns, categories and classes of the training
/// data. Does nothing if the training data are sparse.
void inherit(const RawTable& raw, const Labelling& labelling, CsvSource& test) {
  if (is_sparse(raw)) return;
  auto training_table = std::make_shared<Table>(raw.features, labelling.classes, Table::Dense{},
                                                std::vector<float>{});
  training_table->encoding = raw.encoding;
  training_table->labelling = labelling;
  test.training_table = std::move(training_table);
}

/// Returns `test` with the options that the user left out, taken from the training data, and with
/// the facts about the training data that the reader of `test` needs. `train`, `raw` and
/// `labelling` are the source, the rows and the labelling of the training data.
Source fill_in_options(const Source& train, const RawTable& raw, const Labelling& labelling,
                       Source test) {
  inherit_options(train, test);
  if (auto* csv = std::get_if<CsvSource>(&test.kind)) inherit(raw, labelling, *csv);
  if (auto* images = std::get_if<ImagesSource>(&test.kind))
    images->training_features = raw.features;
  std::visit(
      [&]<class Kind>(Kind& kind) {
        const auto* from = std::get_if<Kind>(&train.kind);
        if constexpr (requires { inherit(*from, raw, kind); })
          if (from != nullptr) inherit(*from, raw, kind);
      },
      test.kind);
  return test;
}

/// Loads one source. `labelling` decides what its labels mean. If it is absent, infer_labelling()
/// decides that.
Result<Table> load_part(const Source& source, std::uint64_t seed, Part part,
                        const std::optional<Labelling>& labelling) {
  auto raw = read_raw(source, seed, part);
  if (!raw) return std::move(raw).error();
  if (labelling) return to_table(std::move(*raw), *labelling);
  const auto own_labelling = infer_labelling(*raw);
  if (!own_labelling) return own_labelling.error();
  return to_table(std::move(*raw), *own_labelling);
}

/// Reads the test data and checks that they fit the training data `raw_train`, whose labelling is
/// `labelling`. May change the number of features of `raw_train`; see match_features().
Result<RawTable> read_test(const Source& train, const Source& test, std::uint64_t seed,
                           RawTable& raw_train, const Labelling& labelling) {
  if (auto same = check_same_ratings_matrix(train, test); !same) return std::move(same).error();
  auto raw_test = read_raw(fill_in_options(train, raw_train, labelling, test), seed, Part::test);
  if (!raw_test) return raw_test;
  if (auto fits = match_features(raw_train, *raw_test); !fits) return std::move(fits).error();
  if (auto fits = check_image(raw_test->image, raw_train.image); !fits)
    return std::move(fits).error().within(raw_test->source);
  if (auto fits = check_task(*raw_test, raw_train, labelling); !fits)
    return std::move(fits).error();
  return raw_test;
}

}  // namespace

Result<void> check_image(const std::vector<std::size_t>& test,
                         const std::vector<std::size_t>& train) {
  if (test.empty() || train.empty() || test == train) return {};
  const auto print = [](const std::vector<std::size_t>& image) {
    return std::to_string(image[0]) + "x" + std::to_string(image[1]) + "x" +
           std::to_string(image[2]);
  };
  return Error{"has images of " + print(test) + ", but those of the training data are of " +
               print(train) + " (height x width x channels)"};
}

void inherit_options(const Source& train, Source& test) {
  const auto* csv = std::get_if<CsvSource>(&train.kind);
  if (auto* own = std::get_if<CsvSource>(&test.kind); csv != nullptr && own != nullptr)
    own->training_source = std::make_shared<const CsvSource>(*csv);
  const auto* images = std::get_if<ImagesSource>(&train.kind);
  auto* own = std::get_if<ImagesSource>(&test.kind);
  if (images == nullptr || own == nullptr || own->height != 0) return;
  own->height = images->height;
  own->width = images->width;
}

Result<Table> load(const Source& source, std::uint64_t seed) {
  return load_part(source, seed, Part::train, std::nullopt);
}

Result<Table> load_test(const Source& source, std::uint64_t seed,
                        const std::optional<Labelling>& labelling) {
  return load_part(source, seed, Part::test, labelling);
}

Result<TablePair> load_pair(const Source& train, const Source& test, std::uint64_t seed) {
  auto raw_train = read_raw(train, seed, Part::train);
  if (!raw_train) return std::move(raw_train).error().within("data");
  const auto labelling = infer_labelling(*raw_train);
  if (!labelling) return Error{labelling.error()}.within("data");
  auto raw_test = read_test(train, test, seed, *raw_train, *labelling);
  if (!raw_test) return std::move(raw_test).error().within("test");
  auto train_table = to_table(std::move(*raw_train), *labelling);
  if (!train_table) return std::move(train_table).error().within("data");
  auto test_table = to_table(std::move(*raw_test), *labelling);
  if (!test_table) return std::move(test_table).error().within("test");
  return TablePair{std::move(*train_table), std::move(*test_table)};
}

}  // namespace starling::models
