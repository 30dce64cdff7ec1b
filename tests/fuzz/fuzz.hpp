/// The base of all fuzzers. A fuzzer is a file NAME_fuzz.cpp that defines read() and seeds(), and
/// that passes the inputs of libFuzzer to read(). replay.cpp runs it without libFuzzer. Not
/// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "tests/actor/wire/heap.hpp"

namespace starling::fuzz {

using Input = std::span<const std::byte>;
using Bytes = std::vector<std::byte>;

/// Defined by each fuzzer. Reads an input, and returns true if it is valid. Ends the program if an
/// invariant is violated.
bool read(Input input);

/// Defined by each fuzzer. Returns valid inputs, written by the same code that writes real ones.
std::vector<Bytes> seeds();

/// Called by libFuzzer with each input.
inline int read(const std::uint8_t* data, std::size_t size) {
  read(Input{reinterpret_cast<const std::byte*>(data), size});
  return 0;
}

/// Ends the program with a message unless an invariant holds. `what` describes the invariant.
inline void require(bool condition, const char* what) {
  if (condition) [[likely]]
    return;
  std::fprintf(stderr, "fuzz: broken invariant: %s\n", what);
  std::abort();
}

/// Returns how much memory, in bytes, decoding a network input of `size` bytes may take.
[[nodiscard]] constexpr std::size_t heap_bound(std::size_t size) { return 8 * size + 65536; }

/// Calls `decode` and returns its result. Requires that it never holds more than `heap_max` bytes
/// of heap memory at a time.
template <class Decode>
auto with_bounded_heap(std::size_t heap_max, Decode decode) {
  wire::heap_reset_peak();
  const std::size_t before = wire::heap_bytes();
  auto result = decode();
  const std::size_t peak = wire::heap_peak_bytes() - before;
  if (peak > heap_max) std::fprintf(stderr, "%zu bytes used, %zu allowed\n", peak, heap_max);
  require(peak <= heap_max, "memory is bounded");
  return result;
}

/// Reads an input as a series of values.
class InputReader {
 public:
  explicit InputReader(Input input) : input_(input) {}

  [[nodiscard]] bool empty() const { return input_.empty(); }
  /// Returns the next byte; 0 at the end of the input.
  std::size_t byte() {
    const Input one = take(1);
    return one.empty() ? 0 : static_cast<std::size_t>(one[0]);
  }
  /// Returns the next `size` bytes, or the rest if that is shorter.
  Input take(std::size_t size) {
    const Input taken = input_.first(std::min(size, input_.size()));
    input_ = input_.subspan(taken.size());
    return taken;
  }
  /// Reads a size in two bytes, the lower one first, and returns as many bytes.
  Input sized() {
    const std::size_t low = byte();
    return take(low + 256 * byte());
  }
  Input rest() { return take(input_.size()); }

 private:
  Input input_;
};

/// Appends the size of `part` and `part`, as InputReader::sized() reads them. Requires: less than
/// 64 KiB.
inline void put_sized(Bytes& out, Input part) {
  require(part.size() < 65536, "parts are small");
  out.push_back(static_cast<std::byte>(part.size() % 256));
  out.push_back(static_cast<std::byte>(part.size() / 256));
  out.insert(out.end(), part.begin(), part.end());
}

inline std::string_view text_of(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}
inline Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span{text});
  return {bytes.begin(), bytes.end()};
}

}  // namespace starling::fuzz
