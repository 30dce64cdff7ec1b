#include "starling/actor/fabric/permission.hpp"

#include <sys/prctl.h>

namespace starling::fabric {

void permit_memory_access() {
  // Ignores failures: without Yama (a security module of Linux) the second call fails and is not
  // needed. If another process may still not read the memory of this process, Process::find()
  // returns an Error in that other process.
  (void)::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

}  // namespace starling::fabric
