/// The permission that the provider shm needs.
#pragma once

namespace starling::fabric {

/// Lets other processes of this user read and write the memory of this one, even if that was
/// forbidden before (PR_SET_DUMPABLE, Yama). Thread-safe.
void permit_memory_access();

}  // namespace starling::fabric
