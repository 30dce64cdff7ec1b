#include "starling/models/kernels/kernel_library.hpp"

#include <Eigen/Core>
#ifdef STARLING_HAS_DNNL
#include <dnnl.h>
#endif

namespace starling::models {
namespace {

std::string print_version(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

std::string_view name(KernelLibrary library) {
  return library == KernelLibrary::onednn ? "oneDNN" : "Eigen";
}

bool is_present(KernelLibrary library) { return !version(library).empty(); }

std::string version(KernelLibrary library) {
  if (library == KernelLibrary::eigen)
    return print_version(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
#ifdef STARLING_HAS_DNNL
  const dnnl_version_t* found = dnnl_version();
  return print_version(found->major, found->minor, found->patch);
#else
  return {};
#endif
}

}  // namespace starling::models
