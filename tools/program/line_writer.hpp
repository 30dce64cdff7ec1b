/// Writes lines to a file descriptor on a thread of its own: if nobody reads them, for example
/// because a pipe is full or a terminal is stopped, no other thread waits. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace starling::program {

class LineWriter {
 public:
  /// The most lines that wait to be written. Further ones are dropped and counted.
  static constexpr std::size_t waiting_max = 1000;

  /// The descriptor must stay open until the process ends.
  explicit LineWriter(int descriptor);
  /// Waits until all lines are written, but no longer than a second.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// Returns at once. `line` has no line break at its end.
  void write(std::string line);

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace starling::program
