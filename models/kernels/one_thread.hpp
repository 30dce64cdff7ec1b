/// Limits oneDNN to one thread. For source files that call oneDNN only.
#pragma once

namespace starling::models {

/// While a OneThread lives, OpenMP uses one thread for the calling thread's work: distributions
/// build oneDNN with OpenMP, and a compute thread must not start others. It finds OpenMP's
/// functions in the running program, because a oneDNN that was built without OpenMP does not need
/// them.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int previous_threads_;
};

}  // namespace starling::models
