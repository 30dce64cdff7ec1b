/// Tensors on their way between actors: immutable, shared, never copied per recipient.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/base/tensor_pool.hpp"

namespace starling::core {

/// Fixed-size storage of one element type: its own, aligned to 64 bytes and mutable until shared as
/// const, or a view of another's.
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

  /// Returns a view of the elements at `bytes`, in memory of `owner`, which the view keeps alive.
  /// Requires: can_view(bytes, element_bytes).
  static std::shared_ptr<const Buffer> view(std::shared_ptr<const void> owner,
                                            std::span<const std::byte> bytes,
                                            std::size_t element_bytes) {
    STARLING_CHECK(can_view(bytes, element_bytes));
    return std::shared_ptr<const Buffer>{new Buffer{std::move(owner), bytes, element_bytes}};
  }
  /// True where `bytes` holds whole elements and is aligned for them.
  static bool can_view(std::span<const std::byte> bytes, std::size_t element_bytes) {
    return bytes.size() % element_bytes == 0 &&
           reinterpret_cast<std::uintptr_t>(bytes.data()) % element_bytes == 0;
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
    /// The owner of a view's memory; nullptr where the buffer's memory is its own.
    std::shared_ptr<const void> owner = nullptr;
    void operator()(void* memory) const noexcept {
      if (!owner) blocks::give(memory, bytes);
    }
  };

  Buffer(std::size_t count, std::size_t element_bytes)
      : memory_(blocks::take(count * element_bytes), Give{count * element_bytes}),
        count_(count),
        element_bytes_(element_bytes) {}
  /// Makes a view; it is handed out as const only.
  Buffer(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
         std::size_t element_bytes)
      : memory_(const_cast<std::byte*>(bytes.data()), Give{bytes.size(), std::move(owner)}),
        count_(bytes.size() / element_bytes),
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
  /// The rows of the range that the elements belong to, row after row; nullptr: the whole range.
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
