/// Ctrl-C: SIGINT and SIGTERM. The first asks a running job to stop in order, the second ends the
/// program at once. Process-wide.
#pragma once

namespace starling::app {

/// The exit code of an interrupted program.
inline constexpr int interrupted_code = 130;

/// Takes over both signals. Outside of OrderlyStop they end the program at once, with a message,
/// interrupted_code and no temporary file left behind.
void watch_interrupts();

/// True once a signal came during an OrderlyStop. Any thread.
[[nodiscard]] bool is_interrupted() noexcept;

/// While one lives, the first signal only makes is_interrupted() true. Lives where something is
/// saved.
class OrderlyStop {
 public:
  OrderlyStop() noexcept;
  OrderlyStop(const OrderlyStop&) = delete;
  OrderlyStop& operator=(const OrderlyStop&) = delete;
  ~OrderlyStop();
};

}  // namespace starling::app
