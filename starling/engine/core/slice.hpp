/// Numbers on their way between actors: immutable, shared, never copied per recipient.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/blocks.hpp"
#include "starling/base/check.hpp"

namespace starling::core {

/// Fixed-size, 64-byte aligned storage of one element type. Mutable until shared as const.
class Buffer {
 public:
  /// `count` elements of T, uninitialised.
  template <class T>
  static std::shared_ptr<Buffer> make(std::size_t count) {
    return make(count, sizeof(T));
  }
  static std::shared_ptr<Buffer> make(std::size_t count, std::size_t element_bytes) {
    return std::shared_ptr<Buffer>{new Buffer{count, element_bytes}};
  }

  /// A copy of `values`.
  template <class T>
  static std::shared_ptr<Buffer> copy_of(std::span<const T> values) {
    auto buffer = make<T>(values.size());
    std::ranges::copy(values, buffer->template as<T>().begin());
    return buffer;
  }

  /// Requires: T is the type it was made for.
  template <class T>
  [[nodiscard]] std::span<T> as() {
    STARLING_CHECK(sizeof(T) == element_bytes_);
    return {static_cast<T*>(memory_.get()), count_};
  }
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    STARLING_CHECK(sizeof(T) == element_bytes_);
    return {static_cast<const T*>(memory_.get()), count_};
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }
  /// The elements as they lie in memory.
  [[nodiscard]] std::span<std::byte> bytes() noexcept {
    return {static_cast<std::byte*>(memory_.get()), count_ * element_bytes_};
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(memory_.get()), count_ * element_bytes_};
  }

 private:
  struct Give {
    std::size_t bytes;
    void operator()(void* memory) const noexcept { blocks::give(memory, bytes); }
  };

  Buffer(std::size_t count, std::size_t element_bytes)
      : memory_(blocks::take(count * element_bytes), Give{count * element_bytes}),
        count_(count),
        element_bytes_(element_bytes) {}

  std::unique_ptr<void, Give> memory_;
  std::size_t count_;
  std::size_t element_bytes_;
};

/// Rows of a range, counted from the range's first, ascending. nullptr stands for all of the range.
using Rows = std::shared_ptr<const std::vector<std::uint32_t>>;

/// A read-only part of a Buffer that keeps the buffer alive.
struct Slice {
  std::shared_ptr<const Buffer> buffer;
  std::size_t offset = 0;
  std::size_t count = 0;
  /// Which rows of the range the elements belong to, row after row; nullptr: the whole range.
  Rows rows;

  [[nodiscard]] bool empty() const noexcept { return count == 0; }
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    return buffer ? std::as_const(*buffer).as<T>().subspan(offset, count) : std::span<const T>{};
  }
  /// Its elements as they lie in memory.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (!buffer) return {};
    const std::size_t width = buffer->element_bytes();
    return std::as_const(*buffer).bytes().subspan(offset * width, count * width);
  }
};

}  // namespace starling::core
