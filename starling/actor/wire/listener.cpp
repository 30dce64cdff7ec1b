#include "starling/actor/wire/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace starling::wire {
namespace {

class HoldingBack final : public zmq::monitor_t {
  void on_event_listening(const zmq_event_t& event, const char* /*address*/) override {
    // The system asks again after 1, 3 and 7 seconds, and then no more; a longer wait than that
    // keeps it from handing over who has still said nothing.
    const int seconds = 15;
    const int askings = 3;
    (void)::setsockopt(event.value, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
    (void)::setsockopt(event.value, IPPROTO_TCP, TCP_SYNCNT, &askings, sizeof askings);
  }
};

}  // namespace

void bind_to_speakers(zmq::socket_t& socket, const std::string& address) {
  HoldingBack monitor;
  monitor.init(socket, "inproc://listening", ZMQ_EVENT_LISTENING);
  socket.bind(address);
  monitor.check_event();
}

}  // namespace starling::wire
