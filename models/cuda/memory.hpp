/// Internal: owns memory of a device, and pinned (page-locked) memory of the host, which devices
/// can copy asynchronously. Not thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "starling/models/cuda/check.hpp"

namespace starling::models::cuda {

/// An uninitialised block of bytes: in the current device's memory, or pinned memory of the host.
template <bool on_device>
class Memory {
 public:
  Memory() = default;
  /// Throws Failure, whose message names the number of bytes, if there is too little memory.
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    const std::string action = "allocating " + std::to_string(bytes) + " bytes of " +
                               (on_device ? "the device's memory" : "pinned memory");
    check(on_device ? cudaMalloc(&data_, bytes) : cudaMallocHost(&data_, bytes), action.c_str());
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
    // When the program ends, CUDA may shut down before this destructor runs.
    warn_unless_freed(code == cudaSuccess || code == cudaErrorCudartUnloading, "memory");
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

/// An array of T in its own block of memory M.
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

/// Computes the layout of several arrays in one block of memory, before the block is allocated.
class BlockLayout {
 public:
  /// Adds an aligned array of `count` elements and returns its offset in the block, in bytes.
  template <class T>
  [[nodiscard]] std::size_t add(std::size_t count) {
    const std::size_t offset = bytes_;
    bytes_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return offset;
  }
  /// Returns the size of the block in bytes.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  /// In bytes. cudaMalloc aligns its blocks so, and the fastest kernels of cuDNN and cuBLAS need
  /// it.
  static constexpr std::size_t alignment = 256;
  std::size_t bytes_ = 0;
};

/// Returns the address of the array that begins at `offset` bytes.
template <class T, bool on_device>
[[nodiscard]] T* array_at(const Memory<on_device>& memory, std::size_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(memory.data()) + offset);
}

}  // namespace starling::models::cuda
