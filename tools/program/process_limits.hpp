/// Changes limits of this process. Thread-safe.
#pragma once

namespace starling::program {

/// From this call on, forbids core dumps of this process, and forbids other processes of the same
/// user to read its memory. Call this function before a secret key is read or made.
void protect_process_memory();

/// Raises the soft limit of open file descriptors to the hard limit (`ulimit -Hn`): a node needs
/// several descriptors for each connection, and shells and service managers set a soft limit of
/// 1024.
void raise_descriptor_limit();

}  // namespace starling::program
