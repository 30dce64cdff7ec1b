/// Reads the topologies that collectives name as `trees:FILE`. Blocking.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/topology.hpp"

namespace starling::program {

/// Reads a file of lines A B [LANES]: the members A and B have LANES lanes between them. Errors
/// name the file, and the line if it is bad.
[[nodiscard]] Result<collective::Topology> read_topology(const std::string& path);

/// Returns the file that an exchange names as `trees:FILE`; empty if it names none.
[[nodiscard]] std::string topology_file_in(const std::string& exchange);

/// Returns the name of an exchange with the links of its topology in place of their file, so that
/// all members of a job have the same links wherever they run. Returns other names unchanged.
/// Requires: core::check_exchange(exchange).
[[nodiscard]] Result<std::string> with_links(const std::string& exchange);

}  // namespace starling::program
