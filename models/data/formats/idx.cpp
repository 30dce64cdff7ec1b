#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/input_file.hpp"
#include "starling/models/data/formats/readers.hpp"

namespace starling::models {
namespace {

/// The type of the elements, by its number in the header.
enum class Type : unsigned { uint8 = 0x08, float32 = 0x0d, float64 = 0x0e };

struct Header {
  Type type{};
  /// The size of each dimension; the first is the number of rows.
  std::vector<std::uint32_t> sizes;

  [[nodiscard]] std::uint64_t rows() const { return sizes[0]; }
  [[nodiscard]] std::size_t value_bytes() const {
    return type == Type::uint8 ? 1 : type == Type::float32 ? 4 : 8;
  }
  [[nodiscard]] std::string shape() const {
    std::string text;
    for (const auto size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
    return text;
  }
};

Error error(const InputFile& file, const std::string& what) {
  return Error{file.path() + ": " + what};
}

std::string hex(unsigned byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4U & 15U], digits[byte & 15U]};
}

/// Fills all of `out`. If the content ends too early, the error names `part`, the part of the file
/// that is read, and the byte at which the content ends.
Result<void> read_all(InputFile& file, std::span<std::byte> out, const std::string& part) {
  const auto got = file.read(out);
  if (!got) return got.error();
  if (*got == out.size()) return {};
  return error(file, part + " ends too early, at byte " + std::to_string(file.offset()));
}

/// Reads the size of one dimension: 32 bits, big-endian.
Result<std::uint32_t> read_size(InputFile& file) {
  std::array<std::byte, 4> bytes{};
  if (auto read = read_all(file, bytes, "the header"); !read) return std::move(read).error();
  std::uint32_t size = 0;
  for (const auto byte : bytes) size = size << 8U | std::to_integer<std::uint32_t>(byte);
  return size;
}

Result<Header> read_header(InputFile& file) {
  std::array<std::byte, 4> magic{};
  if (auto read = read_all(file, magic, "the header"); !read) return std::move(read).error();
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(magic[i]); };
  if (at(0) != 0 || at(1) != 0)
    return error(file, "is not an IDX file: it starts with " + hex(at(0)) + " " + hex(at(1)) +
                           ", not with 0x00 0x00");
  const unsigned type = at(2);
  if (type != 0x08 && type != 0x0d && type != 0x0e)
    return error(file, "byte 2 gives the element type " + hex(type) +
                           "; valid: 0x08 (uint8), 0x0d (float), 0x0e (double)");
  Header header{.type = static_cast<Type>(type), .sizes = {}};
  for (unsigned i = 0; i < at(3); ++i) {
    const auto size = read_size(file);
    if (!size) return size.error();
    header.sizes.push_back(*size);
  }
  return header;
}

/// Returns the number of values that the header promises; an error if the file is too short for
/// them.
Result<std::uint64_t> count_values(const InputFile& file, const Header& header) {
  std::uint64_t count = 1;
  const std::uint64_t count_max = file.content_max() / header.value_bytes();
  for (const auto size : header.sizes) {
    if (size == 0) return error(file, "has no elements: its shape is " + header.shape());
    if (count > count_max / size)
      return error(file, "its header promises " + header.shape() + " values of " +
                             std::to_string(header.value_bytes()) +
                             " bytes, but the file is too short for them");
    count *= size;
  }
  return count;
}

/// Converts the big-endian Float that begins at `at`; Bits is an unsigned type of its size.
template <class Float, class Bits>
float decode_big_endian(const std::byte* at) {
  Bits bits = 0;
  for (std::size_t i = 0; i < sizeof(Bits); ++i) bits = bits << 8U | std::to_integer<Bits>(at[i]);
  return static_cast<float>(std::bit_cast<Float>(bits));
}

float decode(Type type, const std::byte* at) {
  switch (type) {
    case Type::uint8:
      return static_cast<float>(std::to_integer<unsigned>(*at));
    case Type::float32:
      return decode_big_endian<float, std::uint32_t>(at);
    case Type::float64:
      return decode_big_endian<double, std::uint64_t>(at);
  }
  return 0;
}

/// Reserves memory for `more` values, of `count` that the header promises. The memory grows with
/// the number of values that were read, so that a wrong header cannot make it large.
void reserve_more(std::vector<float>& values, std::size_t more, std::uint64_t count) {
  if (values.size() + more <= values.capacity()) return;
  values.reserve(std::min<std::size_t>(count, 2 * values.size() + 16 * chunk_values));
}

Result<std::vector<float>> read_values(InputFile& file, Type type, std::uint64_t count) {
  const std::size_t width = Header{type, {}}.value_bytes();
  std::vector<std::byte> chunk(chunk_values * width);
  std::vector<float> values;
  while (values.size() < count) {
    const auto n = std::min<std::size_t>(chunk_values, count - values.size());
    const auto bytes = std::span{chunk}.first(n * width);
    if (auto read = read_all(file, bytes, "the data"); !read) return std::move(read).error();
    reserve_more(values, n, count);
    for (std::size_t i = 0; i < n; ++i) {
      const float value = decode(type, &bytes[i * width]);
      if (!std::isfinite(value))
        return error(file, "value " + std::to_string(values.size() + 1) +
                               " is not a finite number that a float holds");
      values.push_back(value);
    }
  }
  return values;
}

/// Refuses further bytes after the values.
Result<void> expect_end(InputFile& file) {
  std::array<std::byte, 1> byte{};
  const auto got = file.read(byte);
  if (!got) return got.error();
  if (*got == 0) return {};
  return error(file, "holds more than its header promises, from byte " +
                         std::to_string(file.offset() - 1) + " on");
}

/// Reads all values after the header. Refuses further bytes after them.
Result<std::vector<float>> read_content(InputFile& file, const Header& header) {
  const auto count = count_values(file, header);
  if (!count) return count.error();
  if (*count > UINT64_MAX / sizeof(float))
    return error(file, "its header promises " + header.shape() + " values, more than can be held");
  if (auto fits = ReadBudget{file.path()}.check_total(*count * sizeof(float)); !fits)
    return std::move(fits).error();
  auto values = read_values(file, header.type, *count);
  if (!values) return values;
  if (auto end = expect_end(file); !end) return std::move(end).error();
  return values;
}

Result<RawTable> read_images(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return std::move(file).error();
  const auto header = read_header(*file);
  if (!header) return header.error();
  if (header->sizes.size() < 2)
    return error(*file, "has " + std::to_string(header->sizes.size()) +
                            " dimensions, but images have at least 2; is it the labels' file?");
  auto values = read_content(*file, *header);
  if (!values) return std::move(values).error();
  if (header->type == Type::uint8)
    for (float& value : *values) value /= 255;
  const std::uint64_t features = values->size() / header->rows();
  if (features > features_max)
    return error(*file, "has " + std::to_string(features) + " values a row; at most 2147483648");
  RawTable raw{.source = path, .features = features, .task = LabelKind::classes};
  raw.x = Table::Dense{std::move(*values)};
  if (header->sizes.size() == 3) raw.image = {header->sizes[1], header->sizes[2], 1};
  return raw;
}

Result<std::vector<float>> read_labels(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return std::move(file).error();
  const auto header = read_header(*file);
  if (!header) return header.error();
  if (header->sizes.size() != 1)
    return error(*file, "has " + std::to_string(header->sizes.size()) +
                            " dimensions, but labels have 1; is it the images' file?");
  if (header->type != Type::uint8)
    return error(*file, "byte 2 gives the element type " +
                            hex(static_cast<unsigned>(header->type)) +
                            "; valid for labels: 0x08 (uint8)");
  return read_content(*file, *header);
}

}  // namespace

Result<RawTable> read_idx(const IdxSource& source) {
  auto raw = read_images(source.images);
  if (!raw) return raw;
  auto labels = read_labels(source.labels);
  if (!labels) return std::move(labels).error();
  const std::size_t rows = std::get<Table::Dense>(raw->x).values.size() / raw->features;
  if (rows != labels->size())
    return Error{source.images + ": holds " + std::to_string(rows) + " images, but " +
                 source.labels + " holds " + std::to_string(labels->size()) + " labels"};
  raw->labels = std::move(*labels);
  raw->source = source.labels;
  return raw;
}

}  // namespace starling::models
