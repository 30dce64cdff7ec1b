/// Limits that this process asks of the system for itself. Any thread.
#pragma once

namespace starling::program {

/// Has the process leave no core dump, and other processes of its user not look into its memory,
/// from here on. Called before a secret key is read or made.
void keep_to_itself();

/// Lets the process have as many descriptors as it may (`ulimit -Hn`): a node needs some for each
/// connection, and shells and service managers allow 1024 at first.
void allow_descriptors();

}  // namespace starling::program
