# Finds libfabric, which Debian ships without a CMake package. Defines Libfabric::fabric.
include(FindPackageHandleStandardArgs)

find_path(Libfabric_INCLUDE_DIR rdma/fabric.h)
find_library(Libfabric_LIBRARY fabric)
if(Libfabric_INCLUDE_DIR AND EXISTS ${Libfabric_INCLUDE_DIR}/rdma/fabric.h)
  file(STRINGS ${Libfabric_INCLUDE_DIR}/rdma/fabric.h fabric_versions
    REGEX "#define FI_(MAJOR|MINOR)_VERSION ")
  list(TRANSFORM fabric_versions REPLACE "[^0-9]" "")
  string(REPLACE ";" "." Libfabric_VERSION "${fabric_versions}")
endif()
find_package_handle_standard_args(Libfabric REQUIRED_VARS Libfabric_LIBRARY Libfabric_INCLUDE_DIR
  VERSION_VAR Libfabric_VERSION)

if(Libfabric_FOUND AND NOT TARGET Libfabric::fabric)
  add_library(Libfabric::fabric UNKNOWN IMPORTED)
  set_target_properties(Libfabric::fabric PROPERTIES IMPORTED_LOCATION ${Libfabric_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Libfabric_INCLUDE_DIR})
endif()
mark_as_advanced(Libfabric_INCLUDE_DIR Libfabric_LIBRARY)
