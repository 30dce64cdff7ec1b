/// The memory of tensors in messages: immutable and shared, so that no recipient needs a copy.
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

/// An array of fixed size with elements of one type. A buffer either has memory of its own, or is a
/// read-only view of the memory of another object. Its own memory is aligned to 64 bytes, and may
/// be written as long as no one else reads the buffer.
class Buffer {
 public:
  /// Returns a buffer of `count` uninitialised elements of T.
  template <class T>
  static std::shared_ptr<Buffer> make(std::size_t count) {
    return make(count, sizeof(T));
  }
  static std::shared_ptr<Buffer> make(std::size_t count, std::size_t element_bytes) {
    return std::shared_ptr<Buffer>{new Buffer{count, element_bytes}};
  }

  /// Returns a view of the elements in `bytes`. This memory belongs to `holder`, which the view
  /// keeps alive.
  /// Requires: can_view(bytes, element_bytes).
  static std::shared_ptr<const Buffer> view(std::shared_ptr<const void> holder,
                                            std::span<const std::byte> bytes,
                                            std::size_t element_bytes) {
    STARLING_CHECK(can_view(bytes, element_bytes));
    return std::shared_ptr<const Buffer>{new Buffer{std::move(holder), bytes, element_bytes}};
  }
  /// True if `bytes` is aligned for elements of `element_bytes` bytes and holds a whole number of
  /// them.
  static bool can_view(std::span<const std::byte> bytes, std::size_t element_bytes) {
    return bytes.size() % element_bytes == 0 &&
           reinterpret_cast<std::uintptr_t>(bytes.data()) % element_bytes == 0;
  }

  /// Returns a buffer with a copy of `values`.
  template <class T>
  static std::shared_ptr<Buffer> copy_of(std::span<const T> values) {
    auto buffer = make<T>(values.size());
    std::ranges::copy(values, buffer->template as<T>().begin());
    return buffer;
  }

  /// Returns a buffer with a copy of the elements at `bytes`.
  static std::shared_ptr<Buffer> copy_of(std::span<const std::byte> bytes,
                                         std::size_t element_bytes) {
    auto buffer = make(bytes.size() / element_bytes, element_bytes);
    std::ranges::copy(bytes, buffer->bytes().begin());
    return buffer;
  }
  /// Returns a buffer of `count` elements that are 0.
  static std::shared_ptr<Buffer> zeros(std::size_t count, std::size_t element_bytes) {
    auto buffer = make(count, element_bytes);
    std::ranges::fill(buffer->bytes(), std::byte{0});
    return buffer;
  }

  /// Returns the elements. Requires: an element has sizeof(T) bytes.
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
  /// The memory of the elements.
  [[nodiscard]] std::span<std::byte> bytes() noexcept {
    return {static_cast<std::byte*>(memory_.get()), count_ * element_bytes_};
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(memory_.get()), count_ * element_bytes_};
  }

 private:
  struct Deleter {
    std::size_t bytes;
    /// The object that holds a view's memory; nullptr if the buffer has memory of its own.
    std::shared_ptr<const void> holder = nullptr;
    void operator()(void* memory) const noexcept {
      if (!holder) tensor_pool::release(memory, bytes);
    }
  };

  Buffer(std::size_t count, std::size_t element_bytes)
      : memory_(tensor_pool::allocate(count * element_bytes), Deleter{count * element_bytes}),
        count_(count),
        element_bytes_(element_bytes) {}
  /// Makes a view. Only view() calls this constructor, and returns the buffer as const: nobody
  /// writes through the const_cast.
  Buffer(std::shared_ptr<const void> holder, std::span<const std::byte> bytes,
         std::size_t element_bytes)
      : memory_(const_cast<std::byte*>(bytes.data()), Deleter{bytes.size(), std::move(holder)}),
        count_(bytes.size() / element_bytes),
        element_bytes_(element_bytes) {}

  std::unique_ptr<void, Deleter> memory_;
  std::size_t count_;
  std::size_t element_bytes_;
};

/// Some rows of a range: ascending indices, counted from the first row of the range. nullptr stands
/// for the whole range.
using Rows = std::shared_ptr<const std::vector<std::uint32_t>>;

/// A read-only part of a Buffer; it keeps the buffer alive.
struct Slice {
  std::shared_ptr<const Buffer> buffer;
  std::size_t offset = 0;
  std::size_t count = 0;
  /// The rows of the range whose elements the slice holds, one row after another; nullptr: the
  /// slice holds the whole range.
  Rows rows;
  /// True if the elements are floats of which most are 0, or of which all have 0 in the lower 16
  /// bits, as in compressed gradients: they then travel in a compact form (compact.hpp).
  bool is_compact = false;

  [[nodiscard]] bool empty() const noexcept { return count == 0; }
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    return buffer ? std::as_const(*buffer).as<T>().subspan(offset, count) : std::span<const T>{};
  }
  /// The memory of the slice's elements.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (!buffer) return {};
    const std::size_t width = buffer->element_bytes();
    return std::as_const(*buffer).bytes().subspan(offset * width, count * width);
  }
  /// True if the slice travels in a compact form.
  [[nodiscard]] bool travels_compact() const noexcept {
    return is_compact && buffer && count > 0 && buffer->element_bytes() == sizeof(float);
  }
};

}  // namespace starling::core
