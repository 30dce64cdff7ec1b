/// Internal to actor/wire: lets any thread wake a thread that polls.
#pragma once

namespace starling::wire {

/// Holds a descriptor that is readable from notify() until clear().
class Wake {
 public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void notify() const;
  void clear() const;
  /// Negative if the system had no descriptor left.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace starling::wire
