# Finds cuDNN by header and library, in the folders of the CUDA toolkit or in the folder cuDNN_ROOT.
# Defines cuDNN::cudnn.
include(FindPackageHandleStandardArgs)

find_path(cuDNN_INCLUDE_DIR cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(cuDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
if(cuDNN_INCLUDE_DIR)
  file(STRINGS ${cuDNN_INCLUDE_DIR}/cudnn_version.h lines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  # In some packages cudnn_version.h only includes cudnn_version_v9.h.
  if(NOT lines AND EXISTS ${cuDNN_INCLUDE_DIR}/cudnn_version_v9.h)
    file(STRINGS ${cuDNN_INCLUDE_DIR}/cudnn_version_v9.h lines REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  endif()
  string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
  list(JOIN lines "." cuDNN_VERSION)
endif()
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR
  VERSION_VAR cuDNN_VERSION)

if(cuDNN_FOUND AND NOT TARGET cuDNN::cudnn)
  add_library(cuDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(cuDNN::cudnn PROPERTIES IMPORTED_LOCATION ${cuDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${cuDNN_INCLUDE_DIR})
endif()
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_LIBRARY)
