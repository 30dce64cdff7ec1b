/// Limits oneDNN to one thread. Only for source files that call oneDNN.
#pragma once

namespace starling::models {

/// While a OneThread lives, OpenMP uses one thread for the calling thread's work: Linux
/// distributions build oneDNN with OpenMP, and a compute thread must not start others. OneThread
/// looks up OpenMP's functions in the running program and does nothing if there are none, because
/// oneDNN may have been built without OpenMP.
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
