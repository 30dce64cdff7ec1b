#include "starling/models/kernels/one_thread.hpp"

#include <dlfcn.h>

namespace starling::models {
namespace {

/// OpenMP's functions; null if the program contains no OpenMP.
struct OpenMp {
  int (*get_threads)();
  void (*set_threads)(int);
};

const OpenMp& openmp() {
  static const OpenMp found{
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads")),
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))};
  return found;
}

}  // namespace

OneThread::OneThread()
    : previous_threads_(openmp().get_threads != nullptr ? openmp().get_threads() : 1) {
  if (previous_threads_ != 1 && openmp().set_threads != nullptr) openmp().set_threads(1);
}

OneThread::~OneThread() {
  if (previous_threads_ != 1 && openmp().set_threads != nullptr)
    openmp().set_threads(previous_threads_);
}

}  // namespace starling::models
