#include "starling/engine/core/compact.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

using Word = std::uint64_t;
constexpr std::size_t bits_of_word = 64;

std::uint32_t bits_of(float element) { return std::bit_cast<std::uint32_t>(element); }

std::size_t words_of(std::size_t count) { return (count + bits_of_word - 1) / bits_of_word; }

/// Writes elements, or their upper halves, one after the other.
class Writer {
 public:
  Writer(bool has_halves, std::span<std::byte> out) : has_halves_(has_halves), out_(out) {}

  void put(std::uint32_t element) {
    if (has_halves_)
      put_bytes(static_cast<std::uint16_t>(element >> 16U));
    else
      put_bytes(element);
  }

 private:
  template <class T>
  void put_bytes(T value) {
    std::memcpy(&out_[at_], &value, sizeof value);
    at_ += sizeof value;
  }

  bool has_halves_;
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

/// Reads what a Writer has written.
class Reader {
 public:
  Reader(bool has_halves, std::span<const std::byte> in) : has_halves_(has_halves), in_(in) {}

  std::uint32_t get() {
    return has_halves_ ? std::uint32_t{get_bytes<std::uint16_t>()} << 16U
                       : get_bytes<std::uint32_t>();
  }
  /// True if only bytes that are 0 are left.
  [[nodiscard]] bool is_at_end() const {
    return std::ranges::all_of(in_.subspan(at_), [](std::byte b) { return b == std::byte{0}; });
  }

 private:
  template <class T>
  T get_bytes() {
    T value{};
    std::memcpy(&value, &in_[at_], sizeof value);
    at_ += sizeof value;
    return value;
  }

  bool has_halves_;
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
};

}  // namespace

CompactForm compact_form(std::span<const float> elements) {
  std::uint32_t set = 0;
  std::uint32_t lower_halves = 0;
  for (const float element : elements) {
    set += static_cast<std::uint32_t>(bits_of(element) != 0);
    lower_halves |= bits_of(element) & 0xFFFFU;
  }
  const CompactForm whole{lower_halves == 0, false, static_cast<std::uint32_t>(elements.size())};
  const CompactForm sparse{lower_halves == 0, true, set};
  return compact_size(sparse, elements.size()) < compact_size(whole, elements.size()) ? sparse
                                                                                      : whole;
}

std::size_t compact_size(const CompactForm& form, std::size_t count) {
  const std::size_t bits = form.is_sparse ? words_of(count) * sizeof(Word) : 0;
  const std::size_t elements = form.elements;
  return bits + 4 * (form.has_halves ? (elements + 1) / 2 : elements);
}

std::vector<std::byte> to_compact(const CompactForm& form, std::span<const float> elements) {
  std::vector<std::byte> bytes(compact_size(form, elements.size()));
  const std::size_t words = form.is_sparse ? words_of(elements.size()) : 0;
  Writer writer{form.has_halves, std::span{bytes}.subspan(words * sizeof(Word))};
  if (!form.is_sparse) {
    for (const float element : elements) writer.put(bits_of(element));
    return bytes;
  }
  for (std::size_t w = 0; w < words; ++w) {
    const std::size_t first = w * bits_of_word;
    const auto part = elements.subspan(first, std::min(bits_of_word, elements.size() - first));
    Word bits = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::uint32_t element = bits_of(part[i]);
      if (element == 0) continue;
      bits |= Word{1} << i;
      writer.put(element);
    }
    std::memcpy(&bytes[w * sizeof(Word)], &bits, sizeof bits);
  }
  return bytes;
}

bool from_compact(const CompactForm& form, std::span<const std::byte> bytes, std::span<float> out) {
  STARLING_CHECK(bytes.size() == compact_size(form, out.size()));
  const std::size_t words = form.is_sparse ? words_of(out.size()) : 0;
  Reader reader{form.has_halves, bytes.subspan(words * sizeof(Word))};
  if (form.is_sparse) {
    std::ranges::fill(out, 0.0F);
    std::size_t left = form.elements;
    for (std::size_t w = 0; w < words; ++w) {
      Word bits = 0;
      std::memcpy(&bits, &bytes[w * sizeof(Word)], sizeof bits);
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t at = w * bits_of_word + static_cast<std::size_t>(std::countr_zero(bits));
        if (at >= out.size() || left-- == 0) return false;
        out[at] = std::bit_cast<float>(reader.get());
      }
    }
    if (left != 0) return false;
  } else {
    if (form.elements != out.size()) return false;
    for (float& element : out) element = std::bit_cast<float>(reader.get());
  }
  return reader.is_at_end() && compact_form(out) == form;
}

}  // namespace starling::core
