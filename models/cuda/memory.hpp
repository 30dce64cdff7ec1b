/// Internal: memory of a device, and pinned memory of the host, which a device reads and writes by
/// itself. One object owns each block; one thread uses it at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "starling/models/cuda/check.hpp"

namespace starling::models::cuda {

/// A block of bytes, uninitialised, in the current device's memory or pinned in the host's.
template <bool on_device>
class Memory {
 public:
  Memory() = default;
  /// Throws Failure, which names the bytes, where memory is short.
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    const std::string what = "taking " + std::to_string(bytes) + " bytes of " +
                             (on_device ? "the device's memory" : "pinned memory");
    check(on_device ? cudaMalloc(&data_, bytes) : cudaMallocHost(&data_, bytes), what.c_str());
  }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    Memory{std::move(other)}.swap(*this);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (data_ == nullptr) return;
    const auto code = on_device ? cudaFree(data_) : cudaFreeHost(data_);
    // When the program ends, the driver may be gone before its memory is freed.
    expect(code == cudaSuccess || code == cudaErrorCudartUnloading, "memory");
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void swap(Memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

using DeviceMemory = Memory<true>;
using PinnedMemory = Memory<false>;

/// Numbers of one kind in a Memory of their own.
template <class T, class M>
class Array {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  Array() = default;
  explicit Array(std::size_t size) : memory_(size * sizeof(T)), size_(size) {}
  [[nodiscard]] T* data() const { return static_cast<T*>(memory_.data()); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<T> span() const { return {data(), size_}; }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

 private:
  M memory_;
  std::size_t size_ = 0;
};

template <class T>
using DeviceArray = Array<T, DeviceMemory>;
template <class T>
using PinnedArray = Array<T, PinnedMemory>;

/// Divides a block into aligned parts: first every part is planned, then the block is taken.
class Parts {
 public:
  /// Plans a part of `count` numbers and returns its offset.
  template <class T>
  [[nodiscard]] std::size_t plan(std::size_t count) {
    const std::size_t at = bytes_;
    bytes_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return at;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  /// Bytes; the alignment of cudaMalloc, and the one that cuDNN's and cuBLAS's fastest kernels
  /// need.
  static constexpr std::size_t alignment = 256;
  std::size_t bytes_ = 0;
};

template <class T, bool on_device>
[[nodiscard]] T* part(const Memory<on_device>& memory, std::size_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(memory.data()) + offset);
}

}  // namespace starling::models::cuda
