/// Internal to Transport: the socket that others connect to.
#pragma once

#include <string>
#include <zmq.hpp>

namespace starling::wire {

/// Binds, and has the system hold back those who connect until they say something, which ZeroMQ
/// does at once. Who stays silent costs nothing here, and is dropped after some seconds: for each
/// connection that ZeroMQ has accepted it holds a timer, and looks through all timers to end one.
/// Throws zmq::error_t where the address cannot be had.
void bind_to_speakers(zmq::socket_t& socket, const std::string& address);

}  // namespace starling::wire
