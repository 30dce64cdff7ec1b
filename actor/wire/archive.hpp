/// cereal archives for messages on the network. Numbers are little-endian and have a fixed width.
/// Decoding never allocates more than a small multiple of the bytes that it is given, plus
/// `unpacked_bytes_max` for tensors in a compact form (compact.hpp). It throws DecodeError if the
/// bytes are not what an Encoder would have written, or if bytes are left over. A shared object is
/// encoded once for each pointer to it.
///
/// The elements of tensors do not pass through the archive: an Encoder collects them as
/// attachments, in order, and a Decoder takes them from the attached bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cereal/cereal.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/fields.hpp"

namespace starling::wire {

using Bytes = std::vector<std::byte>;

class DecodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

static_assert(std::endian::native == std::endian::little,
              "numbers are written as they lie in memory");

/// Contiguous bytes of a tensor, and the object that keeps them alive, which is null if the bytes
/// are valid only during a call.
struct Attachment {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// The most bytes of memory that the tensors in a compact form of one message may take once they
/// are expanded. Senders divide messages so that their tensors would fit into one part of a ZeroMQ
/// message even without the compact form.
inline constexpr std::size_t unpacked_bytes_max = std::size_t{8} << 20U;

class Encoder : public cereal::OutputArchive<Encoder, cereal::AllowEmptyClassElision> {
 public:
  explicit Encoder(Bytes& out) : OutputArchive(this), out_(out) {}

  void put(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), first, first + size);
  }
  void attach(Attachment attachment) { attachments_.push_back(std::move(attachment)); }
  [[nodiscard]] std::vector<Attachment>& attachments() noexcept { return attachments_; }

 private:
  Bytes& out_;
  std::vector<Attachment> attachments_;
};

class Decoder : public cereal::InputArchive<Decoder, cereal::AllowEmptyClassElision> {
 public:
  explicit Decoder(std::span<const std::byte> in, Attachment attached = {})
      : InputArchive(this), in_(in), attached_(std::move(attached)) {}

  void get(void* data, std::size_t size) {
    if (size > in_.size()) throw DecodeError{"ends too early"};
    if (size > 0) std::memcpy(data, in_.data(), size);
    in_ = in_.subspan(size);
  }
  /// Removes and returns the next `size` attached bytes. Throws if fewer are left.
  Attachment take_attached(std::size_t size) {
    if (size > attached_.bytes.size()) throw DecodeError{"lacks bytes of its tensors"};
    const auto bytes = attached_.bytes.first(size);
    attached_.bytes = attached_.bytes.subspan(size);
    return {attached_.owner, bytes};
  }
  /// Counts the bytes that tensors in a compact form take in memory. Throws if they are too many.
  void count_unpacked(std::size_t bytes) {
    unpacked_bytes_ += bytes;
    if (unpacked_bytes_ > unpacked_bytes_max)
      throw DecodeError{"has tensors that take too much memory"};
  }
  /// Reads the number of elements that follow, each of at least `element_bytes_min` bytes. Throws
  /// if the bytes that are left cannot hold them.
  std::size_t get_count(std::size_t element_bytes_min) {
    std::uint32_t count = 0;
    get(&count, sizeof count);
    if (element_bytes_min > 0 && count > in_.size() / element_bytes_min)
      throw DecodeError{"announces more elements than it holds"};
    return count;
  }
  /// Throws if bytes are left over.
  void finish() const {
    if (!in_.empty() || !attached_.bytes.empty())
      throw DecodeError{"has bytes left over at its end"};
  }

 private:
  std::span<const std::byte> in_;
  Attachment attached_;
  std::size_t unpacked_bytes_ = 0;
};

template <class A>
inline constexpr bool is_encoder = std::is_same_v<A, Encoder>;

template <class T>
inline constexpr bool is_bytes = false;
template <std::size_t n>
inline constexpr bool is_bytes<std::array<std::uint8_t, n>> = true;

/// Encodes or decodes one field of a struct. An array of bytes is written without its length.
template <class A, class T>
void put_or_get_field(A& archive, T& field) {
  if constexpr (std::is_enum_v<T>) {
    static_assert(sizeof(T) == 1);
    auto number = static_cast<std::uint8_t>(field);
    archive(number);
    if (number > static_cast<std::uint8_t>(last_of(T{})))
      throw DecodeError{"holds an unknown enumerator"};
    if constexpr (!is_encoder<A>) field = static_cast<T>(number);
  } else if constexpr (is_bytes<T>) {
    if constexpr (is_encoder<A>)
      archive.put(field.data(), field.size());
    else
      archive.get(field.data(), field.size());
  } else {
    archive(field);
  }
}

/// The least number of bytes that an encoded T takes: that of a T with empty containers.
template <class T>
std::size_t encoded_size_min() {
  if constexpr (std::is_arithmetic_v<T>) {
    return sizeof(T);
  } else {
    static const std::size_t size = [] {
      Bytes bytes;
      Encoder encoder{bytes};
      encoder(T{});
      return bytes.size();
    }();
    return size;
  }
}

/// Returns `size` in the type that counts have on the wire. Throws std::length_error if it is above
/// UINT32_MAX.
inline std::uint32_t to_count(std::size_t size) {
  if (size > UINT32_MAX) throw std::length_error{"too long for the wire"};
  return static_cast<std::uint32_t>(size);
}

}  // namespace starling::wire

namespace cereal {

namespace starling_wire = starling::wire;

template <class T>
requires std::is_arithmetic_v<T>
void CEREAL_SAVE_FUNCTION_NAME(starling_wire::Encoder& archive, const T& value) {
  archive.put(&value, sizeof value);
}
template <class T>
requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(starling_wire::Decoder& archive, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte = 0;
    archive.get(&byte, 1);
    if (byte > 1) throw starling_wire::DecodeError{"holds a bool that is not 0 or 1"};
    value = byte == 1;
  } else {
    archive.get(&value, sizeof value);
  }
}

inline void CEREAL_SAVE_FUNCTION_NAME(starling_wire::Encoder& archive, const std::string& text) {
  archive(starling_wire::to_count(text.size()));
  archive.put(text.data(), text.size());
}
inline void CEREAL_LOAD_FUNCTION_NAME(starling_wire::Decoder& archive, std::string& text) {
  text.resize(archive.get_count(1));
  archive.get(text.data(), text.size());
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(starling_wire::Encoder& archive, const std::vector<T>& values) {
  archive(starling_wire::to_count(values.size()));
  if constexpr (std::is_arithmetic_v<T>) {
    archive.put(values.data(), values.size() * sizeof(T));
  } else {
    for (const T& value : values) archive(value);
  }
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(starling_wire::Decoder& archive, std::vector<T>& values) {
  values.resize(archive.get_count(starling_wire::encoded_size_min<T>()));
  if constexpr (std::is_arithmetic_v<T>) {
    archive.get(values.data(), values.size() * sizeof(T));
  } else {
    for (T& value : values) archive(value);
  }
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(starling_wire::Encoder& archive, const std::optional<T>& value) {
  archive(value.has_value());
  if (value) archive(*value);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(starling_wire::Decoder& archive, std::optional<T>& value) {
  bool has_value = false;
  archive(has_value);
  value.reset();
  if (has_value) archive(value.emplace());
}

template <class T, class U>
void CEREAL_SAVE_FUNCTION_NAME(starling_wire::Encoder& archive, const std::pair<T, U>& value) {
  archive(value.first, value.second);
}
template <class T, class U>
void CEREAL_LOAD_FUNCTION_NAME(starling_wire::Decoder& archive, std::pair<T, U>& value) {
  archive(value.first, value.second);
}

/// Encodes a shared value like an optional one: the receiver gets a copy.
template <class T>
void CEREAL_SAVE_FUNCTION_NAME(starling_wire::Encoder& archive,
                               const std::shared_ptr<const T>& value) {
  archive(value != nullptr);
  if (value) archive(*value);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(starling_wire::Decoder& archive, std::shared_ptr<const T>& value) {
  bool has_value = false;
  archive(has_value);
  value.reset();
  if (!has_value) return;
  auto decoded = std::make_shared<T>();
  archive(*decoded);
  value = std::move(decoded);
}

template <class... Ts>
void CEREAL_SAVE_FUNCTION_NAME(starling_wire::Encoder& archive, const std::variant<Ts...>& value) {
  static_assert(sizeof...(Ts) < 256);
  archive(static_cast<std::uint8_t>(value.index()));
  std::visit([&](const auto& alternative) { archive(alternative); }, value);
}
template <class... Ts>
void CEREAL_LOAD_FUNCTION_NAME(starling_wire::Decoder& archive, std::variant<Ts...>& value) {
  std::uint8_t index = 0;
  archive(index);
  if (index >= sizeof...(Ts))
    throw starling_wire::DecodeError{"holds a variant of an unknown type"};
  const auto load = [&]<std::size_t... I>(std::index_sequence<I...>) {
    (void)((I == index ? (archive(value.template emplace<I>()), true) : false) || ...);
  };
  load(std::index_sequence_for<Ts...>{});
}

/// Encodes or decodes a struct by the list of its fields. If the struct has is_well_formed(),
/// throws when it returns false, both in encoding and in decoding.
template <class A, starling::Fielded M>
void CEREAL_SERIALIZE_FUNCTION_NAME(A& archive, M& message) {
  std::apply([&](auto&... fields) { (starling_wire::put_or_get_field(archive, fields), ...); },
             starling::fields_of(message));
  if constexpr (requires { message.is_well_formed(); })
    if (!message.is_well_formed()) throw starling_wire::DecodeError{"is not well-formed"};
}

}  // namespace cereal

CEREAL_SETUP_ARCHIVE_TRAITS(starling::wire::Decoder, starling::wire::Encoder)
