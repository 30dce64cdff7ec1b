/// Changes limits of this process. Any thread.
#pragma once

namespace starling::program {

/// Forbids core dumps of this process and forbids other processes of its user to read its memory,
/// from here on. Called before a secret key is read or made.
void protect_process_memory();

/// Raises the limit of open descriptors to the hard limit (`ulimit -Hn`): a node needs several for
/// each connection, and shells and service managers allow 1024 at first.
void raise_descriptor_limit();

}  // namespace starling::program
