/// A link between a reader and a writer, in one process or in two. For tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/actor/fabric/provider.hpp"
#include "starling/actor/fabric/region_reader.hpp"
#include "starling/actor/fabric/region_writer.hpp"

/// Skips the test where libfabric cannot be used.
#define SKIP_WITHOUT(provider)                                        \
  if (const auto usable = starling::fabric::check(provider); !usable) \
  GTEST_SKIP() << usable.error().message

namespace starling::fabric {

inline constexpr LinkId test_link_id = 7;

/// Both ends in this process.
struct TestLink {
  explicit TestLink(
      SlotLayout layout = {4, 1U << 16U}, Provider provider = Provider::shm,
      std::function<void()> on_free = [] {}) {
    auto opened = RegionReader::open({.provider = provider,
                                      .layout = layout,
                                      .writer = own_claim(),
                                      .on_free = std::move(on_free)});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    reader = std::move(opened).value();
    auto endpoint = Endpoint::open(provider).value();
    writer = RegionWriter::open(std::move(endpoint), provider, test_link_id, reader->offer(), false)
                 .value();
    writer->begin();
    reader->connect();
    const auto connected = writer->connect();
    EXPECT_TRUE(connected) << (connected ? "" : connected.error().message);
  }

  /// Writes one part.
  [[nodiscard]] std::optional<Ticket> write(std::span<const std::byte> bytes) const {
    return writer->write({&bytes, 1});
  }
  /// Tells the writer which slots are free again.
  void pass_releases() const {
    while (const auto release = reader->collect()) writer->release(*release);
  }

  std::unique_ptr<RegionReader> reader;
  std::unique_ptr<RegionWriter> writer;
};

/// Returns bytes that differ from each other and from those with another seed.
inline std::vector<std::byte> make_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>((seed + i) * 2654435761U >> 13U);
  return bytes;
}

}  // namespace starling::fabric
