/// An endpoint of libfabric that writes into the registered memory of other endpoints, and that
/// others write to. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "starling/actor/fabric/provider.hpp"
#include "starling/base/result.hpp"

namespace starling::fabric {

/// Memory of another process, as its endpoint has registered it.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

enum class WriteResult : std::uint8_t {
  /// All bytes are in the other process's memory.
  complete,
  /// Nothing was written, because the endpoints are not connected yet, because the other endpoint
  /// has not called progress() for too long, or because `late_writes_max` writes have timed out and
  /// not ended.
  busy,
  /// The other process is gone or does not answer, or the provider fails. Some of the bytes may be
  /// written, now or later.
  failed,
};

class Endpoint {
 public:
  /// The most bytes of a name.
  static constexpr std::size_t name_bytes_max = 200;
  /// With shm, the most writes into memory of an endpoint that does not call progress().
  static constexpr std::size_t writes_max = 120;
  /// The most writes that have timed out and have not ended.
  static constexpr std::size_t late_writes_max = 16;

  /// Opens an endpoint, at `host` (a numeric IP address of this machine) unless the provider is
  /// shm. Returns an Error that says why the provider cannot be used.
  static Result<std::unique_ptr<Endpoint>> open(Provider provider,
                                                const std::string& host = "127.0.0.1");
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// The name by which other endpoints connect to this one.
  [[nodiscard]] const std::string& name() const noexcept;

  /// Registers memory, into which other endpoints may write until this endpoint is closed.
  [[nodiscard]] Result<RemoteMemory> register_memory(std::span<std::byte> memory);

  /// Adds another endpoint. Returns its number, which write() takes.
  [[nodiscard]] Result<std::uint64_t> add(const std::string& name);
  /// Releases the resources of an endpoint that add() has added, if the provider is shm. Does
  /// nothing under other providers, because their writes may still be in flight.
  void remove(std::uint64_t endpoint);

  /// Writes `bytes` to the memory `to`, from byte `offset` of it on. Returns when all bytes are
  /// there. Waits for at most `timeout`; the provider shm never waits. A write that has timed out
  /// reads `bytes` until the provider ends it or this endpoint is closed; until then `owner` is
  /// kept. Without an owner, `bytes` must outlive this endpoint.
  [[nodiscard]] WriteResult write(std::uint64_t endpoint, std::span<const std::byte> bytes,
                                  std::shared_ptr<const void> owner, const RemoteMemory& to,
                                  std::uint64_t offset,
                                  std::chrono::milliseconds timeout = std::chrono::seconds{1});

  /// Takes in what other endpoints have sent: their requests to connect, and the notices of their
  /// writes. With shm, at most `writes_max` notices may wait to be taken in. Waits for at most
  /// `timeout` if there is nothing to take in. Requires: with shm, `timeout` is 0.
  void progress(std::chrono::milliseconds timeout = {});

  /// Removes the name of the endpoint from the system if the provider is shm. Connected endpoints
  /// stay connected, and nothing remains in the system if this process is killed.
  void hide_name();

 private:
  class Impl;
  explicit Endpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace starling::fabric
