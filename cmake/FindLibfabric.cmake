# Finds the headers of libfabric, which Debian ships without a CMake package. Starling loads the
# library when it needs it (actor/fabric/libfabric.hpp).
include(FindPackageHandleStandardArgs)

find_path(Libfabric_INCLUDE_DIR rdma/fabric.h)
if(Libfabric_INCLUDE_DIR AND EXISTS ${Libfabric_INCLUDE_DIR}/rdma/fabric.h)
  file(STRINGS ${Libfabric_INCLUDE_DIR}/rdma/fabric.h fabric_versions
    REGEX "#define FI_(MAJOR|MINOR)_VERSION ")
  list(TRANSFORM fabric_versions REPLACE "[^0-9]" "")
  string(REPLACE ";" "." Libfabric_VERSION "${fabric_versions}")
endif()
find_package_handle_standard_args(Libfabric REQUIRED_VARS Libfabric_INCLUDE_DIR
  VERSION_VAR Libfabric_VERSION)
mark_as_advanced(Libfabric_INCLUDE_DIR)
