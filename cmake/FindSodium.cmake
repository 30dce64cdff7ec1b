# Finds libsodium, which Debian ships without a CMake package. Defines Sodium::sodium.
include(FindPackageHandleStandardArgs)

find_path(Sodium_INCLUDE_DIR sodium.h)
find_library(Sodium_LIBRARY sodium)
if(Sodium_INCLUDE_DIR AND EXISTS ${Sodium_INCLUDE_DIR}/sodium/version.h)
  file(STRINGS ${Sodium_INCLUDE_DIR}/sodium/version.h sodium_version_line
    REGEX "#define SODIUM_VERSION_STRING ")
  string(REGEX REPLACE "[^0-9.]" "" Sodium_VERSION "${sodium_version_line}")
endif()
find_package_handle_standard_args(Sodium REQUIRED_VARS Sodium_LIBRARY Sodium_INCLUDE_DIR
  VERSION_VAR Sodium_VERSION)

if(Sodium_FOUND AND NOT TARGET Sodium::sodium)
  add_library(Sodium::sodium UNKNOWN IMPORTED)
  set_target_properties(Sodium::sodium PROPERTIES IMPORTED_LOCATION ${Sodium_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Sodium_INCLUDE_DIR})
endif()
mark_as_advanced(Sodium_INCLUDE_DIR Sodium_LIBRARY)
