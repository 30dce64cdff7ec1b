#include "starling/tools/program/line_writer.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "starling/base/text.hpp"

namespace starling::program {

/// The lines to write. The writing thread shares the queue, because it may still be writing when
/// the LineWriter ends.
struct LineWriter::Queue {
  std::mutex mutex;
  std::condition_variable has_changed;
  std::deque<std::string> lines;
  /// The number of lines that were dropped since the writing thread took the last one.
  std::uint64_t dropped = 0;
  bool is_closed = false;
  bool has_ended = false;
};

namespace {

void write_all(int descriptor, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) at += static_cast<std::size_t>(count);
  }
}

}  // namespace

LineWriter::LineWriter(int descriptor) : queue_(std::make_shared<Queue>()) {
  std::thread{[descriptor, queue = queue_] {
    std::unique_lock lock{queue->mutex};
    while (true) {
      queue->has_changed.wait(lock, [&] { return !queue->lines.empty() || queue->is_closed; });
      if (queue->lines.empty()) break;
      std::string line = std::move(queue->lines.front()) + "\n";
      queue->lines.pop_front();
      if (const auto dropped = std::exchange(queue->dropped, 0); dropped > 0)
        line.insert(0, print_count(dropped, "line") + " dropped, because nobody read the output\n");
      lock.unlock();
      write_all(descriptor, line);
      lock.lock();
    }
    queue->has_ended = true;
    queue->has_changed.notify_all();
  }}.detach();
}

LineWriter::~LineWriter() {
  std::unique_lock lock{queue_->mutex};
  queue_->is_closed = true;
  queue_->has_changed.notify_all();
  queue_->has_changed.wait_for(lock, std::chrono::seconds{1}, [&] { return queue_->has_ended; });
}

void LineWriter::write(std::string line) {
  const std::lock_guard lock{queue_->mutex};
  if (queue_->lines.size() >= waiting_max) {
    ++queue_->dropped;
    return;
  }
  queue_->lines.push_back(std::move(line));
  queue_->has_changed.notify_all();
}

}  // namespace starling::program
