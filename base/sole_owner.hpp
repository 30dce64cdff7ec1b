/// Says whether a shared value may be changed in place, because nobody else holds it any more.
#pragma once

#include <atomic>
#include <memory>

namespace starling {

/// True if `value` is the last owner: what others wrote or read through theirs has happened before.
/// May be false for the last owner under ThreadSanitizer.
template <class T>
[[nodiscard]] bool is_sole_owner(const std::shared_ptr<T>& value) {
#ifdef __SANITIZE_THREAD__
  (void)value;  // ThreadSanitizer does not model the fence below, so it sees copies only.
  return false;
#else
  if (value.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);  // after the last reader's release
  return true;
#endif
}

}  // namespace starling
