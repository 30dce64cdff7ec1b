/// The machine that speeds are measured on: the processor, the libraries, this build; and the
/// memory that this process took. Reads the system's files. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace starling::program {

struct Machine {
  /// The system's name for it; "unknown" where it has none.
  std::string processor;
  /// The number of processors that this process may run on.
  std::size_t processors = 1;
  /// Name and version of each library that computes.
  std::vector<std::pair<std::string, std::string>> libraries;
  /// "starling VERSION, commit COMMIT, gcc 12.2.0".
  std::string build;
};

[[nodiscard]] Machine this_machine();

/// The lines that open a report: processor, threads, libraries, build.
[[nodiscard]] std::string print(const Machine& machine);

/// The same as keys of an object.
[[nodiscard]] nlohmann::ordered_json json_of(const Machine& machine);

/// The most memory that this process ever had resident, in bytes; 0 where the system does not say.
[[nodiscard]] std::uint64_t peak_memory();

}  // namespace starling::program
