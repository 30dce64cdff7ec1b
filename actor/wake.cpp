#include "starling/actor/wake.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace starling::wire {

Wake::Wake() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Wake::~Wake() { ::close(descriptor_); }

void Wake::notify() const {
  const std::uint64_t one = 1;
  (void)!::write(descriptor_, &one, sizeof one);
}

void Wake::clear() const {
  std::uint64_t notifications = 0;
  (void)!::read(descriptor_, &notifications, sizeof notifications);
}

}  // namespace starling::wire
