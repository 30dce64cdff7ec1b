#include "starling/models/kernels/one_thread.hpp"

#include <dlfcn.h>

namespace starling::models {
namespace {

struct OpenMp {
  int (*get)();
  void (*set)(int);
};

const OpenMp& openmp() {
  static const OpenMp found{
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads")),
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))};
  return found;
}

}  // namespace

OneThread::OneThread() : before_(openmp().get != nullptr ? openmp().get() : 1) {
  if (before_ != 1 && openmp().set != nullptr) openmp().set(1);
}

OneThread::~OneThread() {
  if (before_ != 1 && openmp().set != nullptr) openmp().set(before_);
}

}  // namespace starling::models
