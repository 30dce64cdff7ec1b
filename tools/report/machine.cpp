#include "starling/tools/report/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "starling/base/text.hpp"
#include "starling/models/kernels/kernel_library.hpp"
#include "starling/tools/program/version.hpp"

namespace starling::program {
namespace {

std::string processor_name() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);)
    if (const auto colon = line.find(':');
        line.starts_with("model name") && colon != std::string::npos)
      return std::string{trim(std::string_view{line}.substr(colon + 1))};
  return "unknown";
}

std::size_t processor_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

}  // namespace

Machine this_machine() {
  Machine machine{
      .processor = processor_name(),
      .processors = processor_count(),
      .libraries = {},
      .build = fmt::format("starling {}, commit {}, {}", version(), commit(), compiler())};
  for (const auto library : {models::KernelLibrary::onednn, models::KernelLibrary::eigen})
    if (models::is_present(library))
      machine.libraries.emplace_back(models::name(library), models::version(library));
  return machine;
}

std::string print(const Machine& machine) {
  std::string libraries;
  for (const auto& [name, version] : machine.libraries)
    libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", name, version);
  return fmt::format("processor   {}, {}\nthreads     1\nlibraries   {}\nbuild       {}\n",
                     machine.processor, print_count(machine.processors, "core"), libraries,
                     machine.build);
}

nlohmann::ordered_json json_of(const Machine& machine) {
  nlohmann::ordered_json json;
  json["processor"] = machine.processor;
  json["cores"] = machine.processors;
  json["threads"] = 1;
  for (const auto& [name, version] : machine.libraries) json["libraries"][name] = version;
  json["build"] = machine.build;
  return json;
}

std::uint64_t peak_memory_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace starling::program
