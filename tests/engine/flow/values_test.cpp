#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <string>

#include "starling/engine/flow/shuffle/partitioner.hpp"
#include "starling/engine/flow/values/codec.hpp"
#include "starling/engine/flow/values/footprint.hpp"
#include "starling/engine/flow/values/hash.hpp"
#include "starling/engine/flow/values/type_name.hpp"

namespace starling::flow {
namespace {

enum class Colour : std::uint8_t { red, blue };

struct Point {
  int x = 0;
  std::string name;
  std::optional<std::vector<double>> weights;

  bool operator==(const Point&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.x, m.name, m.weights); }
};
struct NoFields {
  int x = 0;
};
struct NoEquality {
  int x = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.x); }
};

static_assert(Key<int> && Key<std::string> && Key<Point> && Key<Colour>);
static_assert(Key<std::tuple<int, std::vector<std::pair<std::string, bool>>>>);
static_assert(Record<NoEquality> && !Key<NoEquality>);
static_assert(!Record<NoFields> && !Record<std::vector<NoFields>> && !Record<int*>);

template <class T>
T round_trip(const T& value) {
  Bytes bytes;
  put(bytes, value);
  std::span<const std::byte> in{bytes};
  T read{};
  get(in, read);
  EXPECT_TRUE(in.empty());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::span<const std::byte> part{bytes.data(), size};
    EXPECT_THROW(get(part, read = T{}), DecodeError) << size;
  }
  std::span<const std::byte> all{bytes};
  get(all, read);
  return read;
}

TEST(RecordCodec, ReadsWhatItWroteAndRefusesEveryPartOfIt) {
  const Point point{.x = -3, .name = "größe", .weights = std::vector{0.5, -0.0}};
  EXPECT_EQ(round_trip(point), point);
  const std::tuple all{std::uint8_t{255},
                       true,
                       std::string(300, 'x'),
                       std::optional<int>{},
                       std::vector<std::vector<bool>>{{true, false}, {}},
                       Colour::blue,
                       std::array<short, 2>{1, -2}};
  EXPECT_EQ(round_trip(all), all);
}

TEST(RecordCodec, RefusesABoolThatIsNotZeroOrOne) {
  const Bytes bytes{std::byte{2}};
  std::span<const std::byte> in{bytes};
  bool value = false;
  EXPECT_THROW(get(in, value), DecodeError);
}

/// An enumeration whose last value is known.
enum class Shade : std::int16_t { light, dark };
constexpr Shade last_of(Shade) { return Shade::dark; }
/// A record that holds others of its type.
struct Nest {
  std::vector<Nest> inner;
  static constexpr auto fields(auto& m) { return std::tie(m.inner); }
};

TEST(RecordCodec, RefusesValuesThatNoRecordHas) {
  EXPECT_EQ(round_trip(Shade::dark), Shade::dark);
  for (const int number : {2, -1, 300}) {
    Bytes bytes;
    put(bytes, static_cast<std::int16_t>(number));
    std::span<const std::byte> in{bytes};
    Shade shade{};
    EXPECT_THROW(get(in, shade), DecodeError) << number;
  }
  // Each four bytes say that there is one more inside.
  Bytes deep;
  for (int i = 0; i < 100'000; ++i) put(deep, std::uint32_t{1});
  std::span<const std::byte> in{deep};
  Nest nest;
  EXPECT_THROW(get(in, nest), DecodeError);
  Bytes many;
  put(many, UINT32_MAX);
  std::span<const std::byte> count{many};
  std::vector<std::tuple<>> nothing;
  EXPECT_THROW(get(count, nothing), DecodeError);
  EXPECT_EQ(round_trip(std::vector<std::tuple<>>(1000)).size(), 1000U);
  static_assert(!Record<long double> && !Record<std::vector<long double>>);
}

TEST(HashOf, IsTheSameOnEveryMachine) {
  EXPECT_EQ(hash_of(0), 0xe220a8397b1dcdafU);  // SplitMix64's first value for the seed 0
  EXPECT_EQ(hash_of(std::int8_t{-1}), hash_of(std::int64_t{-1}));
  EXPECT_EQ(hash_of(0.0), hash_of(-0.0));
  // These change with the format of checkpoints (actor/flow/checkpoint_folder.cpp).
  EXPECT_EQ(hash_of(std::string{}), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(hash_of(std::string{"abcdefgh"}), 0xb337498aa889df4dU);
  EXPECT_EQ(hash_of(std::string{"abcdefghi"}), 0xc3b02eb996319464U);
  EXPECT_EQ(hash_of(std::string{"abcdefghijklmnop"}), 0xbcd44dcb9a299801U);
  const std::string text = "a text of 25 bytes, or so";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string_view view = std::string_view{text}.substr(0, size);
    EXPECT_EQ(hash_of(std::pair{1, view}), hash_of(std::pair{1, std::string{view}}));
  }
}

TEST(HashOf, TellsKeysApart) {
  std::set<std::uint64_t> hashes;
  std::size_t keys = 0;
  const auto add = [&](const auto& key) { hashes.insert(hash_of(key)), ++keys; };
  for (int i = 0; i < 1000; ++i) add(i), add(std::to_string(i)), add(std::pair{i, i + 1});
  for (int i = 0; i < 20; ++i) add(std::string(static_cast<std::size_t>(i), '\0'));
  for (int i = 0; i < 20; ++i) add(std::vector<int>(static_cast<std::size_t>(i) + 2, 0));
  add(Point{.x = 1, .name = "a", .weights = {}});
  EXPECT_EQ(hashes.size(), keys);
}

TEST(Footprint, CountsWhatARecordOwns) {
  EXPECT_EQ(footprint(7), sizeof(int));
  EXPECT_EQ(footprint(std::string{}), sizeof(std::string));
  EXPECT_GE(footprint(std::string(1000, 'x')), 1000U + sizeof(std::string));
  EXPECT_GE(footprint(std::vector<std::string>(10, std::string(100, 'x'))), 1000U);
}

TEST(HashPartitioner, SpreadsKeysEvenly) {
  constexpr Part parts = 7;
  constexpr int keys = 70'000;
  const HashPartitioner partitioner{parts};
  std::vector<int> counts(parts);
  for (int i = 0; i < keys; ++i) ++counts.at(partitioner.part_of(i));
  for (const int count : counts) EXPECT_NEAR(count, keys / parts, 600);  // 6 standard deviations
}

TEST(RangePartitioner, KeepsKeysInOrder) {
  const RangePartitioner<int> partitioner{{10, 20, 30}};
  EXPECT_EQ(partitioner.parts(), 4U);
  EXPECT_EQ(partitioner.part_of(-5), 0U);
  EXPECT_EQ(partitioner.part_of(15), 1U);
  EXPECT_EQ(partitioner.part_of(31), 3U);
}

TEST(RangePartitioner, SpreadsAFrequentKeyInTheOrderOfItsParts) {
  const RangePartitioner<int> partitioner{{5, 5, 5}};
  std::vector<Part> parts;
  for (Part from = 0; from < 8; ++from) parts.push_back(partitioner.part_of(5, from, 8));
  EXPECT_EQ(parts, (std::vector<Part>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(partitioner.part_of(4, 7, 8), 0U);
  EXPECT_EQ(partitioner.part_of(6, 0, 8), 3U);
}

TEST(ChooseSplitters, DivideAWeightedSampleEvenly) {
  std::vector<SampledKey<int>> sample;
  for (int i = 0; i < 100; ++i) sample.push_back({99 - i, 1});
  EXPECT_EQ(choose_splitters(sample, 4), (std::vector{24, 49, 74}));
  EXPECT_EQ(choose_splitters(std::vector<SampledKey<int>>{{1, 90}, {2, 10}}, 3),
            (std::vector{1, 1}));
  EXPECT_TRUE(choose_splitters(std::vector<SampledKey<int>>{}, 5).empty());
  EXPECT_TRUE(choose_splitters(sample, 1).empty());
}

struct Tree {
  std::string name;
  std::vector<Tree> children;
  static constexpr auto fields(auto& m) { return std::tie(m.name, m.children); }
};

TEST(TypeName, SaysHowBytesAreLaidOut) {
  EXPECT_EQ((type_name<std::tuple<std::vector<std::vector<bool>>, Tree, char>>()),
            "(vector<vector<bool>>, {string, vector<{...}>}, i8)");
  EXPECT_EQ((type_name<std::array<std::pair<double, Colour>, 2>>()), "array<(f64, enum8), 2>");
  EXPECT_EQ(type_name<Point>(), "{i32, string, optional<vector<f64>>}");
  EXPECT_EQ(type_name<std::tuple<>>(), "()");
  EXPECT_EQ((type_name<std::pair<std::uint64_t, float>>()), "(u64, f32)");
}

}  // namespace
}  // namespace starling::flow
