/// Describes the machine and the build with which speeds are measured, and measures the memory of
/// this process. Reads files in /proc. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace starling::program {

struct Machine {
  /// The name of the processor's model; "unknown" if the system does not say.
  std::string processor;
  /// The number of processors that this process may run on.
  std::size_t processors = 1;
  /// Name and version of each library in this build that computes the kernels of models.
  std::vector<std::pair<std::string, std::string>> libraries;
  /// "starling VERSION, commit COMMIT, gcc 12.2.0".
  std::string build;
};

[[nodiscard]] Machine this_machine();

/// Returns the first lines of a benchmark's report: processor, threads, libraries, build. The
/// number of threads is always 1, because benchmarks compute on one thread.
[[nodiscard]] std::string print(const Machine& machine);

/// Returns the same facts as a JSON object.
[[nodiscard]] nlohmann::ordered_json json_of(const Machine& machine);

/// Returns the largest resident size of this process so far, in bytes; 0 if the system does not
/// say.
[[nodiscard]] std::uint64_t peak_memory_bytes();

}  // namespace starling::program
