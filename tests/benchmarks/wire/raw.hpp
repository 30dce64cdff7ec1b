/// Transfers the load with ZeroMQ alone. The worker has a DEALER socket and the owner a ROUTER
/// socket. For a push, the worker sends chunks and receives an acknowledgement of each; for a pull,
/// it requests chunks and receives them. Both copy received chunks into the memory of their
/// tensors, and send chunks from there.
#pragma once

#include <chrono>
#include <cstring>
#include <zmq.hpp>

#include "starling/actor/wire/transport.hpp"
#include "tests/benchmarks/wire/pair.hpp"

namespace starling::benchmarks {

struct RawOptions {
  /// The owner's keys for CURVE; null for a plain connection.
  const wire::KeyPair* keys = nullptr;
};

namespace detail {

/// Returns a message with chunk `index` of `memory`. A chunk of 4 KiB or more is not copied, so
/// `memory` must outlive the message.
inline zmq::message_t make_chunk(std::vector<char>& memory, std::size_t index, std::size_t bytes) {
  char* chunk = memory.data() + index * bytes;
  if (bytes < 4096) return {chunk, bytes};
  return {chunk, bytes, [](void*, void*) {}, nullptr};
}

/// Returns the number of the chunk, which is the whole content of `message`.
inline std::uint32_t read_number(const zmq::message_t& message) {
  std::uint32_t number = 0;
  std::memcpy(&number, message.data(), sizeof number);
  return number;
}

template <class Bytes>
zmq::const_buffer buffer_of(const Bytes& key) {
  return zmq::buffer(key.data(), key.size());
}

}  // namespace detail

/// Runs the owner, which answers the worker until the process is killed.
inline void run_raw_owner(const Pipe& pipe, const Load& load, const RawOptions& options) {
  zmq::context_t context;
  zmq::socket_t router{context, zmq::socket_type::router};
  if (options.keys != nullptr) {
    router.set(zmq::sockopt::curve_server, true);
    router.set(zmq::sockopt::curve_secretkey, detail::buffer_of(options.keys->secret_key));
  }
  router.bind("tcp://127.0.0.1:*");
  pipe.send(router.get(zmq::sockopt::last_endpoint));
  std::vector<char> memory(load.bytes(), 1);
  while (true) {
    zmq::message_t sender;
    zmq::message_t head;
    zmq::message_t body;
    (void)router.recv(sender);
    (void)router.recv(head);
    const std::uint32_t number = detail::read_number(head);
    const bool is_push = head.more();
    if (is_push) {
      (void)router.recv(body);
      std::memcpy(memory.data() + number * load.chunk_bytes, body.data(), body.size());
    }
    router.send(sender, zmq::send_flags::sndmore);
    if (is_push) {
      router.send(head, zmq::send_flags::none);
    } else {
      router.send(head, zmq::send_flags::sndmore);
      router.send(detail::make_chunk(memory, number, load.chunk_bytes), zmq::send_flags::none);
    }
  }
}

/// Runs the worker. Returns the seconds that all measured pushes took, and those of all pulls.
inline std::vector<double> run_raw_worker(const Pipe& pipe, const Load& load,
                                          const RawOptions& options) {
  zmq::context_t context;
  zmq::socket_t dealer{context, zmq::socket_type::dealer};
  const wire::KeyPair own = wire::make_key_pair();
  if (options.keys != nullptr) {
    dealer.set(zmq::sockopt::curve_publickey, detail::buffer_of(own.public_key));
    dealer.set(zmq::sockopt::curve_secretkey, detail::buffer_of(own.secret_key));
    dealer.set(zmq::sockopt::curve_serverkey, detail::buffer_of(options.keys->public_key));
  }
  dealer.connect(pipe.receive());
  std::vector<char> memory(load.bytes(), 1);
  const auto run_round = [&](bool pushes) {
    std::size_t sent = 0;
    for (std::size_t done = 0; done < load.messages();) {
      for (; sent < load.messages() && sent - done < in_flight; ++sent) {
        const auto number = static_cast<std::uint32_t>(sent);
        dealer.send(zmq::buffer(&number, sizeof number),
                    pushes ? zmq::send_flags::sndmore : zmq::send_flags::none);
        if (pushes)
          dealer.send(detail::make_chunk(memory, sent, load.chunk_bytes), zmq::send_flags::none);
      }
      zmq::message_t head;
      zmq::message_t body;
      (void)dealer.recv(head);
      ++done;
      if (!head.more()) continue;
      (void)dealer.recv(body);
      std::memcpy(memory.data() + detail::read_number(head) * load.chunk_bytes, body.data(),
                  body.size());
    }
  };
  std::vector<double> seconds;
  for (const bool pushes : {true, false}) {
    for (std::size_t i = 0; i < warm_up(load); ++i) run_round(pushes);
    const auto started_at = Clock::now();
    for (std::size_t i = 0; i < load.rounds; ++i) run_round(pushes);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - started_at).count());
  }
  return seconds;
}

}  // namespace starling::benchmarks
