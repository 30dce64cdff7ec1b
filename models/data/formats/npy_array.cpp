#include "starling/models/data/formats/npy_array.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

#include "starling/base/input.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/formats/npy_header.hpp"

namespace starling::models {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_bytes_max = 65536;

std::string print_shape(std::span<const std::uint64_t> shape) {
  std::string text;
  for (const auto extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

/// Converts an IEEE 754 binary16, a half-precision float.
float decode_half(std::uint16_t bits) {
  const int exponent = bits >> 10U & 31U;
  const auto fraction = static_cast<float>(bits & 1023U);
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent < 31) return sign * std::ldexp(1024 + fraction, exponent - 25);
  return fraction == 0 ? sign * HUGE_VALF : std::nanf("");
}

/// A number in IEEE 754's binary16, a half-precision float.
struct Half {
  std::uint16_t bits;
};

/// Converts the Number whose bytes begin at `first_byte`.
template <class Number, bool big_endian>
float decode_number(const std::byte* first_byte) {
  using Bits = std::conditional_t<
      sizeof(Number) == 1, std::uint8_t,
      std::conditional_t<sizeof(Number) == 2, std::uint16_t,
                         std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>>>;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    bits = bits << 8U |
           std::to_integer<std::uint64_t>(first_byte[big_endian ? i : sizeof(Number) - 1 - i]);
  const auto number = std::bit_cast<Number>(static_cast<Bits>(bits));
  if constexpr (std::is_same_v<Number, Half>)
    return decode_half(number.bits);
  else
    return static_cast<float>(number);
}

using Decode = float (*)(const std::byte*);

template <class Number>
Decode decoder_of_order(bool is_big_endian) {
  return is_big_endian ? decode_number<Number, true> : decode_number<Number, false>;
}

Decode decoder_of(const NpyType& type) {
  const bool big = type.is_big_endian;
  if (type.kind == 'f')
    return type.bytes == 2   ? decoder_of_order<Half>(big)
           : type.bytes == 4 ? decoder_of_order<float>(big)
                             : decoder_of_order<double>(big);
  if (type.kind == 'i')
    return type.bytes == 1   ? decoder_of_order<std::int8_t>(big)
           : type.bytes == 2 ? decoder_of_order<std::int16_t>(big)
           : type.bytes == 4 ? decoder_of_order<std::int32_t>(big)
                             : decoder_of_order<std::int64_t>(big);
  return type.bytes == 1   ? decoder_of_order<std::uint8_t>(big)
         : type.bytes == 2 ? decoder_of_order<std::uint16_t>(big)
         : type.bytes == 4 ? decoder_of_order<std::uint32_t>(big)
                           : decoder_of_order<std::uint64_t>(big);
}

/// Reads one array, and counts the bytes that it has read, for messages.
class ArrayReader {
 public:
  /// `source` must outlive the reader.
  explicit ArrayReader(const NpyByteSource& source) : source_(source) {}

  Result<NpyArray> read();
  /// Reads the header only. Requires: the source reads the bytes of `file`.
  Result<NpyArray> map(std::shared_ptr<const MappedFile> file);

 private:
  [[nodiscard]] Error error(const std::string& what) const {
    return Error{source_.name + ": " + what};
  }
  /// Fills all of `out`. If the content ends too early, the error names `part`, the part of the
  /// array that is read, and the byte at which the content ends.
  Result<void> fill(std::span<std::byte> out, const char* part);
  Result<NpyHeader> read_header();
  /// Returns the number of elements that the header promises; an error if the content is too short
  /// for them.
  [[nodiscard]] Result<std::uint64_t> count_values(const NpyHeader& header) const;
  Result<std::vector<float>> read_values(const NpyHeader& header, std::uint64_t count);
  /// Returns the error for a value that is not finite; `element` is its number in the file's order.
  [[nodiscard]] Error not_finite(const NpyHeader& header, std::uint64_t element) const;
  /// Refuses further bytes after the array.
  Result<void> expect_end();
  [[nodiscard]] Error longer_than_promised() const {
    return error("holds more than its header promises, from byte " + std::to_string(offset_) +
                 " on");
  }

  const NpyByteSource& source_;
  /// The number of bytes read so far.
  std::uint64_t offset_ = 0;
};

Result<void> ArrayReader::fill(std::span<std::byte> out, const char* part) {
  const auto got = source_.read(out);
  if (!got) return got.error();
  offset_ += *got;
  if (*got == out.size()) return {};
  return error(std::string{part} + " ends too early, at byte " + std::to_string(offset_));
}

Result<NpyHeader> ArrayReader::read_header() {
  std::array<std::byte, 12> head{};
  const auto head_bytes = std::span{head};
  if (auto got = fill(head_bytes.first(8), "its header"); !got) return std::move(got).error();
  const std::string_view found_magic{reinterpret_cast<const char*>(head.data()), magic.size()};
  if (found_magic != magic)
    return error("is not a NumPy array: it starts with " + quote(found_magic) +
                 ", not with \\x93NUMPY");
  const auto version = std::to_integer<unsigned>(head[6]);
  if (version < 1 || version > 3)
    return error("its format is version " + std::to_string(version) + "; valid: 1, 2, 3");
  const std::size_t width = version == 1 ? 2 : 4;
  if (auto got = fill(head_bytes.subspan(8, width), "its header"); !got)
    return std::move(got).error();
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;)
    length = length << 8U | std::to_integer<std::size_t>(head[8 + i]);
  if (length > header_bytes_max)
    return error("its header takes " + std::to_string(length) + " bytes; valid: up to " +
                 std::to_string(header_bytes_max));
  std::string text(length, '\0');
  if (auto got = fill(std::as_writable_bytes(std::span{text}), "its header"); !got)
    return std::move(got).error();
  auto header = parse_npy_header(text);
  if (!header) return error(header.error().message);
  return header;
}

Result<std::uint64_t> ArrayReader::count_values(const NpyHeader& header) const {
  const std::string shape = print_shape(header.shape);
  if (std::ranges::find(header.shape, 0U) != header.shape.end())
    return error("has no elements: its shape is " + shape);
  const std::uint64_t bytes_left =
      source_.content_max > offset_ ? source_.content_max - offset_ : std::uint64_t{0};
  const std::uint64_t count_max = std::min(bytes_left / header.type.bytes, UINT64_MAX / 16);
  std::uint64_t count = 1;
  for (const auto extent : header.shape) {
    if (count > count_max / extent)
      return error("its header promises " + shape + " values of " +
                   print_count(header.type.bytes, "byte") + ", but the file is too short for them");
    count *= extent;
  }
  return count;
}

Error ArrayReader::not_finite(const NpyHeader& header, std::uint64_t element) const {
  std::vector<std::uint64_t> position(header.shape.size());
  const auto set_axis = [&](std::size_t axis) {
    position[axis] = element % header.shape[axis];
    element /= header.shape[axis];
  };
  for (std::size_t i = 0; i < position.size(); ++i)
    set_axis(header.is_fortran ? i : position.size() - 1 - i);
  return error(
      "the value at " + print_shape(position) +
      " is NaN, infinite or too large for a float; ~numpy.isfinite(x.astype('float32')) marks "
      "all of these");
}

Result<std::vector<float>> ArrayReader::read_values(const NpyHeader& header, std::uint64_t count) {
  const Decode value_at = decoder_of(header.type);
  const std::size_t width = header.type.bytes;
  std::vector<std::byte> chunk(std::min<std::uint64_t>(chunk_values, count) * width);
  std::vector<float> values;
  while (values.size() < count) {
    const auto n = std::min<std::uint64_t>(chunk_values, count - values.size());
    const auto part = std::span{chunk}.first(n * width);
    if (auto got = fill(part, "its data"); !got) return std::move(got).error();
    // Memory grows with the values that were read, never with the number that the header promises.
    if (values.size() + n > values.capacity())
      values.reserve(std::min<std::uint64_t>(count, 2 * values.size() + 16 * chunk_values));
    for (std::size_t i = 0; i < n; ++i) {
      values.push_back(value_at(&part[i * width]));
      if (!std::isfinite(values.back())) return not_finite(header, values.size() - 1);
    }
  }
  return values;
}

Result<void> ArrayReader::expect_end() {
  std::array<std::byte, 1> byte{};
  const auto got = source_.read(byte);
  if (!got) return got.error();
  if (*got == 0) return {};
  return longer_than_promised();
}

/// Returns column-major `values` in row-major order.
std::vector<float> to_row_major(const std::vector<float>& values,
                                const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  std::vector<float> row_major(values.size());
  std::vector<std::uint64_t> position(shape.size(), 0);
  std::uint64_t to = 0;
  for (const float value : values) {
    row_major[to] = value;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      to += strides[axis];
      if (++position[axis] < shape[axis]) break;
      to -= strides[axis] * shape[axis];
      position[axis] = 0;
    }
  }
  return row_major;
}

Result<NpyArray> ArrayReader::read() {
  auto header = read_header();
  if (!header) return std::move(header).error();
  const auto count = count_values(*header);
  if (!count) return count.error();
  const bool needs_transposing = header->is_fortran && header->shape.size() > 1;
  const std::uint64_t value_bytes = *count * sizeof(float) * (needs_transposing ? 2 : 1);
  if (auto fits = ReadBudget{source_.name}.check_total(value_bytes); !fits)
    return std::move(fits).error();
  auto values = read_values(*header, *count);
  if (!values) return std::move(values).error();
  if (auto end = expect_end(); !end) return std::move(end).error();
  if (needs_transposing) *values = to_row_major(*values, header->shape);
  return NpyArray{source_.name, std::move(header->shape),
                  header->type.kind == 'u' && header->type.bytes == 1, std::move(*values)};
}

Result<NpyArray> ArrayReader::map(std::shared_ptr<const MappedFile> file) {
  auto header = read_header();
  if (!header) return std::move(header).error();
  const auto count = count_values(*header);
  if (!count) return count.error();
  const NpyType& type = header->type;
  const bool is_native = type.is_big_endian == (std::endian::native == std::endian::big);
  if (type.kind != 'f' || type.bytes != sizeof(float) || !is_native ||
      (header->is_fortran && header->shape.size() > 1) || offset_ % alignof(float) != 0)
    return error(
        "its values cannot be used as they are in the file; valid with mapped=yes: as "
        "numpy.save(file, numpy.ascontiguousarray(x, 'float32')) writes them");
  const auto values = file->bytes().subspan(offset_);
  offset_ += *count * sizeof(float);
  if (values.size() != *count * sizeof(float)) return longer_than_promised();
  return NpyArray{source_.name,    std::move(header->shape),
                  false,           {},
                  std::move(file), {reinterpret_cast<const float*>(values.data()), *count}};
}

}  // namespace

std::string NpyArray::print_shape() const { return models::print_shape(shape); }

Result<NpyArray> read_npy_array(const NpyByteSource& source) { return ArrayReader{source}.read(); }

Result<NpyArray> map_npy_array(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return std::move(file).error();
  std::span<const std::byte> rest = (*file)->bytes();
  const auto read = [&rest](std::span<std::byte> out) -> Result<std::size_t> {
    const std::size_t size = std::min(out.size(), rest.size());
    std::ranges::copy(rest.first(size), out.begin());
    rest = rest.subspan(size);
    return size;
  };
  constexpr std::array gzip_magic{std::byte{0x1f}, std::byte{0x8b}};
  if (rest.size() >= 2 && std::ranges::equal(rest.first(2), gzip_magic))
    return Error{path + ": is compressed; valid with mapped=yes: a plain file"};
  const NpyByteSource source{.read = read, .content_max = rest.size(), .name = path};
  return ArrayReader{source}.map(*std::move(file));
}

}  // namespace starling::models
