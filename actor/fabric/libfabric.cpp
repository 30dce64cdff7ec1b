#include "starling/actor/fabric/libfabric.hpp"

#include <dlfcn.h>
#include <rdma/fabric.h>

#include <array>
#include <cstddef>
#include <string>

namespace starling::fabric {
namespace {

constexpr const char* file_name = "libfabric.so.1";

/// Finds a function. `Declared` is its type in libfabric's headers.
template <class Declared>
bool find(void* handle, const char* name, Declared& function) {
  function = reinterpret_cast<Declared>(::dlsym(handle, name));
  return function != nullptr;
}

std::string version_text(std::uint32_t version) {
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

Result<Libfabric> load() {
  const KeptHandlers kept;
  void* const handle = ::dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  Libfabric library;
  const bool is_complete =
      handle != nullptr && find<decltype(&::fi_version)>(handle, "fi_version", library.version) &&
      find<decltype(&::fi_getinfo)>(handle, "fi_getinfo", library.getinfo) &&
      find<decltype(&::fi_freeinfo)>(handle, "fi_freeinfo", library.freeinfo) &&
      find<decltype(&::fi_dupinfo)>(handle, "fi_dupinfo", library.dupinfo) &&
      find<decltype(&::fi_fabric)>(handle, "fi_fabric", library.fabric) &&
      find<decltype(&::fi_strerror)>(handle, "fi_strerror", library.strerror);
  if (!is_complete) {
    const char* why = ::dlerror();
    return Error{std::string{file_name} + " cannot be loaded: " + (why == nullptr ? "" : why) +
                 "; valid: an installed libfabric"};
  }
  // dlsym() finds the functions of the latest interface, which the headers of another version may
  // not describe.
  constexpr std::uint32_t built_with = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
  if (library.version() == built_with) return library;
  return Error{std::string{file_name} + " is version " + version_text(library.version()) +
               ", and this program was built with " + version_text(built_with) +
               "; valid: the same version"};
}

}  // namespace

const Result<Libfabric>& libfabric() {
  static const Result<Libfabric> loaded = load();
  return loaded;
}

}  // namespace starling::fabric
