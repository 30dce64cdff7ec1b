#include "starling/models/kernels/library.hpp"

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

std::string_view name(Library library) { return library == Library::onednn ? "oneDNN" : "Eigen"; }

bool is_present(Library library) { return !version(library).empty(); }

std::string version(Library library) {
  if (library == Library::eigen)
    return print_version(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
#ifdef STARLING_HAS_DNNL
  const dnnl_version_t* found = dnnl_version();
  return print_version(found->major, found->minor, found->patch);
#else
  return {};
#endif
}

}  // namespace starling::models
