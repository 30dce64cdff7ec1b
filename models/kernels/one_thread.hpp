/// For the source files around oneDNN only.
#pragma once

namespace starling::models {

/// Keeps OpenMP's thread count of the calling thread at 1 while it lives: distributions build
/// oneDNN with OpenMP, and a compute thread must not wake others. Looks OpenMP up in the running
/// program, because a oneDNN that was built without OpenMP needs nothing here.
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
