/// For the source files around oneDNN only.
#pragma once

namespace starling::models {

/// Holds OpenMP's thread count of the calling thread at 1: distributions build oneDNN with OpenMP,
/// and a compute thread must not wake others. OpenMP is looked up in the running program, for a
/// oneDNN built without it needs nothing here.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace starling::models
