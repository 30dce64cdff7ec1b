#include "starling/app/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "starling/base/permutation.hpp"
#include "starling/base/random.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/data/split.hpp"

namespace starling::app {
namespace {

/// Tells a user's test data apart from the training data of the same source.
constexpr std::uint64_t test_stream = 0x74657374;

const DataEntry* own_source(const Contents& contents, const std::string& name) {
  const auto at = std::ranges::find(contents.data(), name, &DataEntry::name);
  return at == contents.data().end() ? nullptr : &*at;
}

bool is_own(const Contents& contents, const std::string& text) {
  const auto spec = Spec::parse(text);
  return spec && own_source(contents, spec->name) != nullptr;
}

Error unknown(const Contents& contents, const std::string& name) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored))
    return Error{"'" + name + "' is a file; data is named with its format: " + forms_of_data(name)};
  std::vector<std::string> names;
  for (const auto& entry : contents.data()) names.push_back(entry.name);
  for (const auto& [known, summary] : models::source_names()) names.push_back(known);
  return Error{"unknown data source '" + name + "'; " + suggest(name, names)};
}

Result<AnyData> load_own(const DataEntry& entry, const Spec& spec, std::uint64_t seed) {
  SpecReader read{spec};
  auto loaded = entry.load(read, seed);
  if (auto done = read.finish(); !done) return std::move(done).error();
  if (!loaded) return loaded;
  if (loaded->size() == 0) return Error{entry.name + ": holds no samples"};
  if (loaded->size() > UINT32_MAX) return Error{entry.name + ": holds more than 2^32 - 1 samples"};
  return loaded;
}

std::vector<std::uint32_t> numbers(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint32_t> all(to - from);
  std::iota(all.begin(), all.end(), static_cast<std::uint32_t>(from));
  return all;
}

Result<TrainAndTest> split_first(const AnyData& data, std::uint64_t rows) {
  if (rows == 0 || rows >= data.size())
    return Error{"--split " + std::to_string(rows) + " of " + std::to_string(data.size()) +
                 " samples leaves nothing to " + (rows == 0 ? "train" : "test") + " on"};
  return TrainAndTest{data.select(numbers(0, rows)), data.select(numbers(rows, data.size()))};
}

Result<TrainAndTest> hold_out(const AnyData& data, double share, std::uint64_t seed) {
  const auto count =
      static_cast<std::uint64_t>(std::llround(share * static_cast<double>(data.size())));
  if (!(share > 0 && share < 1) || count == 0 || count >= data.size())
    return Error{"--holdout " + print_number(share) + " of " + std::to_string(data.size()) +
                 " samples leaves nothing to train or to test on"};
  const Permutation order{data.size(), Random::stream(seed, test_stream)()};
  std::vector<std::uint32_t> rows(data.size());
  for (std::uint64_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint32_t>(order(i));
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(rows.begin(), middle);
  std::sort(middle, rows.end());
  return TrainAndTest{data.select({middle, rows.end()}), data.select({rows.begin(), middle})};
}

/// Divides a user's own data.
Result<TrainAndTest> divide(const AnyData& data, const DataRequest& request) {
  if (!data.is_divisible()) {
    if (request.split || request.holdout)
      return Error{request.data + ": cannot be divided, for its type has no select(rows); " +
                   "valid: --test SOURCE"};
    return TrainAndTest{data, std::nullopt};
  }
  if (request.split) return split_first(data, *request.split);
  return hold_out(data, request.holdout.value_or(models::SplitOptions::holdout_default),
                  request.seed);
}

Result<TrainAndTest> load_built_in(const DataRequest& request) {
  auto source = models::Source::parse(request.data);
  if (!source) return std::move(source).error();
  models::SplitOptions options{.data = *std::move(source)};
  if (request.test) {
    auto test = models::Source::parse(*request.test);
    if (!test) return std::move(test).error();
    options.test = *std::move(test);
  }
  options.split = request.split;
  options.holdout = request.holdout;
  options.seed = request.seed;
  auto loaded = models::load_split(options);
  if (!loaded) return std::move(loaded).error();
  return TrainAndTest{AnyData::of(std::move(loaded->train)), AnyData::of(std::move(loaded->test))};
}

}  // namespace

std::string forms_of_data(const std::string& path) {
  return "csv:" + path + ", libsvm:" + path + " or idx:" + path + ",LABELS";
}

Result<void> check_data(const Contents& contents, const std::string& text) {
  const auto spec = Spec::parse(text);
  if (!spec) return spec.error();
  if (own_source(contents, spec->name) != nullptr) return {};
  const auto& known = models::source_names();
  if (std::ranges::none_of(known, [&](const auto& source) { return source.first == spec->name; }))
    return unknown(contents, spec->name);
  if (auto parsed = models::Source::parse(text); !parsed) return std::move(parsed).error();
  return {};
}

std::vector<std::string> files_in(const Contents& contents, const std::string& text) {
  const auto spec = Spec::parse(text);
  if (!spec) return {};
  std::vector<std::string> files;
  if (own_source(contents, spec->name) != nullptr) {
    std::error_code ignored;
    for (const auto& [key, value] : spec->options)
      if (std::filesystem::is_regular_file(value, ignored)) files.push_back(value);
    return files;
  }
  const auto source = models::Source::parse(text);
  if (!source) return {};
  if (const auto* idx = std::get_if<models::IdxSource>(&source->kind))
    files = {idx->images, idx->labels};
  if (const auto* csv = std::get_if<models::CsvSource>(&source->kind)) files = {csv->file};
  if (const auto* libsvm = std::get_if<models::LibsvmSource>(&source->kind)) files = {libsvm->file};
  return files;
}

Result<AnyData> load_whole(const Contents& contents, const std::string& text, std::uint64_t seed,
                           const std::optional<models::Labelling>& rule) {
  if (auto valid = check_data(contents, text); !valid) return std::move(valid).error();
  const Spec spec = Spec::parse(text).value();
  if (const DataEntry* own = own_source(contents, spec.name)) return load_own(*own, spec, seed);
  const auto source = models::Source::parse(text).value();
  auto table = rule ? models::load(source, seed, *rule) : models::load(source, seed);
  if (!table) return std::move(table).error();
  return AnyData::of(*std::move(table));
}

Result<TrainAndTest> load_data(const Contents& contents, const DataRequest& request) {
  for (const std::string& text : {request.data, request.test.value_or(request.data)})
    if (auto valid = check_data(contents, text); !valid) return std::move(valid).error();
  const bool own = is_own(contents, request.data);
  if (!own && !(request.test && is_own(contents, *request.test))) return load_built_in(request);
  if ((request.test ? 1 : 0) + (request.split ? 1 : 0) + (request.holdout ? 1 : 0) > 1)
    return Error{"valid: one of --test, --split and --holdout"};
  auto data = load_whole(contents, request.data, request.seed, std::nullopt);
  if (!data) return std::move(data).error();
  if (!request.test) return divide(*data, request);
  auto test = load_whole(contents, *request.test, mix(request.seed ^ test_stream), std::nullopt);
  if (!test) return std::move(test).error();
  return TrainAndTest{*std::move(data), *std::move(test)};
}

std::string suitable_model(const std::string& text, const AnyData& data) {
  const models::Table* table = data.table();
  if (table == nullptr) return {};
  const auto source = models::Source::parse(text);
  if (source) {
    if (std::holds_alternative<models::DigitsSource>(source->kind)) return "mlp:784-128-10";
    if (const auto* ratings = std::get_if<models::RatingsSource>(&source->kind))
      return "mf:rank=" + std::to_string(ratings->rank) +
             ",users=" + std::to_string(ratings->users) +
             ",items=" + std::to_string(ratings->items);
  }
  return table->classes() > 0 ? "softmax" : "linear";
}

std::string describe(const AnyData& data) {
  const models::Table* table = data.table();
  if (table == nullptr) return std::to_string(data.size()) + " samples";
  return std::to_string(table->size()) + " rows, " + std::to_string(table->features()) +
         (table->is_sparse() ? " sparse features, " : " features, ") +
         (table->classes() > 0 ? std::to_string(table->classes()) + " classes"
                               : std::string{"real targets"});
}

std::uint64_t fingerprint(const AnyData& data) {
  std::uint64_t hash = mix(data.size());
  const auto add = [&](std::uint64_t word) {
    hash = (std::rotl(hash, 29) ^ word) * 0x9e3779b97f4a7c15U;
  };
  const models::Table* table = data.table();
  for (std::size_t row = 0; table != nullptr && row < table->size(); ++row) {
    add(std::bit_cast<std::uint32_t>(table->label(row)));
    if (table->is_sparse()) {
      const auto [columns, values] = table->sparse_row(row);
      for (std::size_t i = 0; i < columns.size(); ++i)
        add(std::uint64_t{columns[i]} << 32U | std::bit_cast<std::uint32_t>(values[i]));
    } else {
      for (const float value : table->dense_row(row)) add(std::bit_cast<std::uint32_t>(value));
    }
  }
  return mix(hash);
}

}  // namespace starling::app
