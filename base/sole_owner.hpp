/// Tells whether a shared value may be changed in place, because no other pointer to it exists.
#pragma once

#include <atomic>
#include <memory>

namespace starling {

/// Returns true if `value` is the last pointer to its object. All accesses of other threads through
/// their former pointers then happen before the return. Always returns false under
/// ThreadSanitizer.
template <class T>
[[nodiscard]] bool is_sole_owner(const std::shared_ptr<T>& value) {
#ifdef __SANITIZE_THREAD__
  (void)value;  // ThreadSanitizer does not model the fence below.
  return false;
#else
  if (value.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the releases of other pointers
  return true;
#endif
}

}  // namespace starling
