#include "starling/actor/thread_priority.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace starling {
namespace {

thread_local bool is_network = false;

}  // namespace

bool is_network_thread() { return is_network; }

void set_priority(ThreadPriority priority) {
  is_network = priority == ThreadPriority::network;
  // The main thread, whose id is that of the process, keeps the nice value of the process.
  const int of_process = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, of_process + static_cast<int>(priority));
}

void keep_priority_from_children() {
  const sched_param normal{};
  (void)::sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &normal);
}

}  // namespace starling
