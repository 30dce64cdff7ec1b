#include "starling/models/data/load.hpp"

#include <algorithm>

#include "starling/base/input.hpp"
#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/readers.hpp"
#include "starling/models/data/generators/generators.hpp"
#include "starling/models/data/source/raw.hpp"

namespace starling::models {
namespace {

/// Keeps generated data apart from all else that a job's seed decides.
constexpr std::uint64_t data_stream = 0x64617461;

/// The bytes that a generator makes; 0 for files, whose readers bound themselves.
struct GeneratedBytes {
  std::uint64_t operator()(const DigitsSource& s) const { return 4 * s.n * (28 * 28 + 1); }
  std::uint64_t operator()(const LinearSource& s) const { return 4 * (s.n + 1) * (s.d + 1); }
  std::uint64_t operator()(const RatingsSource& s) const {
    return 4 * (3 * s.n + (s.users + s.items) * s.rank);
  }
  std::uint64_t operator()(const auto& /*files*/) const { return 0; }
};

Result<RawTable> read_raw(const Source& source, std::uint64_t seed, Part part) {
  if (const auto bytes = std::visit(GeneratedBytes{}, source.kind))
    if (auto fits = ReadBudget{source.print()}.expect(bytes); !fits) return std::move(fits).error();
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
  if (raw && raw->place.empty()) raw->place = source.print();
  return raw;
}

bool is_sparse(const RawTable& raw) { return std::holds_alternative<Table::Sparse>(raw.x); }

/// Refuses a test whose generator options decide another truth than the training data's.
Result<void> check_same_truth(const Source& train, const Source& test) {
  const auto* ratings = std::get_if<RatingsSource>(&train.kind);
  const auto* others = std::get_if<RatingsSource>(&test.kind);
  if (ratings == nullptr || others == nullptr) return {};
  if (ratings->users == others->users && ratings->items == others->items &&
      ratings->rank == others->rank)
    return {};
  return Error{test.print() + " does not test " + train.print() +
               ": users, items and rank must be the same"};
}

/// Gives both the same number of features, or says why they cannot have it.
Result<void> fit_features(RawTable& train, RawTable& test) {
  if (is_sparse(train) != is_sparse(test))
    return Error{test.place + ": is " + (is_sparse(test) ? "sparse" : "dense") + ", but " +
                 train.place + " is " + (is_sparse(train) ? "sparse" : "dense")};
  if (is_sparse(train)) train.features = test.features = std::max(train.features, test.features);
  if (train.features == test.features) return {};
  return Error{test.place + ": has " + std::to_string(test.features) + " features, but " +
               train.place + " has " + std::to_string(train.features)};
}

Result<void> fit_task(const RawTable& test, const RawTable& train, const Labelling& rule) {
  const bool asked = test.task.has_value() || test.labelling.has_value();
  const bool values =
      test.labelling ? test.labelling->classes == 0 : test.task == std::optional{LabelKind::values};
  if (!asked || values == (rule.classes == 0)) return {};
  return Error{test.place + ": has " + (values ? "real targets" : "classes") + ", but " +
               train.place + " has " + (values ? "classes" : "real targets")};
}

/// A test without features=N or base=0|1 is held to what the training file says or holds.
void inherit(const LibsvmSource& train, const RawTable& raw, LibsvmSource& test) {
  if (test.features == 0) test.features = train.features;
  if (test.base) return;
  test.base = raw.first_index;
  test.base_decided_by = train.file;
}

/// A test without size=HxW is resized as the training images are.
void inherit(const ImagesSource& train, const RawTable& /*raw*/, ImagesSource& test) {
  if (test.height != 0) return;
  test.height = train.height;
  test.width = train.width;
}

/// A test has the columns, categories and classes of the training file.
void inherit(const RawTable& raw, const Labelling& rule, CsvSource& test) {
  if (is_sparse(raw)) return;
  auto training_table =
      std::make_shared<Table>(raw.features, rule.classes, Table::Dense{}, std::vector<float>{});
  training_table->encoding = raw.encoding;
  training_table->labelling = rule;
  test.training_table = std::move(training_table);
}

/// A test file has its labels where the training file has them.
void inherit(const CsvSource& train, const RawTable& /*raw*/, CsvSource& test) {
  if (!test.label) test.label = train.label;
}

/// `test` with what follows from the training data where it says nothing.
Source inherited(const Source& train, const RawTable& raw, const Labelling& rule, Source test) {
  if (auto* csv = std::get_if<CsvSource>(&test.kind)) inherit(raw, rule, *csv);
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

/// All of one source, its labels read by `rule` where one is given.
Result<Table> load_part(const Source& source, std::uint64_t seed, Part part,
                        const std::optional<Labelling>& rule) {
  auto raw = read_raw(source, seed, part);
  if (!raw) return std::move(raw).error();
  if (rule) return finish(std::move(*raw), *rule);
  const auto own = label_rule(*raw);
  if (!own) return own.error();
  return finish(std::move(*raw), *own);
}

/// Reads the test of `raw`, so that both fit.
Result<RawTable> read_test(const Source& train, const Source& test, std::uint64_t seed,
                           RawTable& raw, const Labelling& rule) {
  if (auto same = check_same_truth(train, test); !same) return std::move(same).error();
  auto other = read_raw(inherited(train, raw, rule, test), seed, Part::test);
  if (!other) return other;
  if (auto fits = fit_features(raw, *other); !fits) return std::move(fits).error();
  if (auto fits = fit_task(*other, raw, rule); !fits) return std::move(fits).error();
  return other;
}

}  // namespace

Result<Table> load(const Source& source, std::uint64_t seed) {
  return load_part(source, seed, Part::train, std::nullopt);
}

Result<Table> load_test(const Source& source, std::uint64_t seed,
                        const std::optional<Labelling>& rule) {
  return load_part(source, seed, Part::test, rule);
}

Result<TablePair> load_pair(const Source& train, const Source& test, std::uint64_t seed) {
  auto raw = read_raw(train, seed, Part::train);
  if (!raw) return std::move(raw).error().within("data");
  const auto rule = label_rule(*raw);
  if (!rule) return Error{rule.error()}.within("data");
  auto other = read_test(train, test, seed, *raw, *rule);
  if (!other) return std::move(other).error().within("test");
  auto train_table = finish(std::move(*raw), *rule);
  if (!train_table) return std::move(train_table).error().within("data");
  auto test_table = finish(std::move(*other), *rule);
  if (!test_table) return std::move(test_table).error().within("test");
  return TablePair{std::move(*train_table), std::move(*test_table)};
}

}  // namespace starling::models
