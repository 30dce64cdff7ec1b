# Finds libzmq and its C++ header, because their CMake packages in Debian do not fit together.
# Defines ZeroMQ::cpp.
include(FindPackageHandleStandardArgs)

find_path(ZeroMQ_INCLUDE_DIR zmq.hpp)
find_library(ZeroMQ_LIBRARY zmq)
if(ZeroMQ_INCLUDE_DIR AND EXISTS ${ZeroMQ_INCLUDE_DIR}/zmq.h)
  file(STRINGS ${ZeroMQ_INCLUDE_DIR}/zmq.h zmq_versions REGEX "#define ZMQ_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" zmq_versions "${zmq_versions}")
  string(REPLACE ";" "." ZeroMQ_VERSION "${zmq_versions}")
endif()
find_package_handle_standard_args(ZeroMQ REQUIRED_VARS ZeroMQ_LIBRARY ZeroMQ_INCLUDE_DIR
  VERSION_VAR ZeroMQ_VERSION)

if(ZeroMQ_FOUND AND NOT TARGET ZeroMQ::cpp)
  add_library(ZeroMQ::cpp UNKNOWN IMPORTED)
  set_target_properties(ZeroMQ::cpp PROPERTIES IMPORTED_LOCATION ${ZeroMQ_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${ZeroMQ_INCLUDE_DIR})
endif()
mark_as_advanced(ZeroMQ_INCLUDE_DIR ZeroMQ_LIBRARY)
