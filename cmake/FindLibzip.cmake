# Finds libzip. Its own CMake package, as Debian ships it, fails unless libzip's programs are installed
# too. Defines Libzip::zip.
include(FindPackageHandleStandardArgs)

find_path(Libzip_INCLUDE_DIR zip.h)
find_library(Libzip_LIBRARY zip)
find_path(Libzip_CONFIG_DIR zipconf.h HINTS ${Libzip_INCLUDE_DIR})
if(Libzip_CONFIG_DIR)
  file(STRINGS ${Libzip_CONFIG_DIR}/zipconf.h libzip_version_line REGEX "#define LIBZIP_VERSION ")
  string(REGEX REPLACE "[^0-9.]" "" Libzip_VERSION "${libzip_version_line}")
endif()
find_package_handle_standard_args(Libzip
  REQUIRED_VARS Libzip_LIBRARY Libzip_INCLUDE_DIR Libzip_CONFIG_DIR VERSION_VAR Libzip_VERSION)

if(Libzip_FOUND AND NOT TARGET Libzip::zip)
  add_library(Libzip::zip UNKNOWN IMPORTED)
  set_target_properties(Libzip::zip PROPERTIES IMPORTED_LOCATION ${Libzip_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${Libzip_INCLUDE_DIR};${Libzip_CONFIG_DIR}")
endif()
mark_as_advanced(Libzip_INCLUDE_DIR Libzip_CONFIG_DIR Libzip_LIBRARY)
