# starling_library(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...]) defines starling_NAME with the alias
# and the exported name starling::NAME. PUBLIC and PRIVATE are the libraries it links.
# starling_program(NAME SOURCES ... LIBRARIES ...) defines a program that is installed.
# starling_test(NAME LABEL unit|scenario|live|slow [PREFIX ...] SOURCES ... LIBRARIES ...) defines one
# test program whose cases ctest runs one by one, as PREFIX.CASE; the label is the prefix unless given.
# Where sanitizers are on, slow tests are left out, and so are programs' (those with a PREFIX). The
# target sanitizer_tests builds the unit and scenario ones, and under AddressSanitizer the live ones
# of the libraries too: ThreadSanitizer does not see how CAF, which is built without it, orders
# messages.

add_library(starling_options INTERFACE)
target_compile_features(starling_options INTERFACE cxx_std_20)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual)
target_compile_options(starling_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings};$<$<BOOL:${STARLING_WERROR}>:-Werror>>")
# What nvcc makes of a file for the host compiler is not pedantic, and it converts in its own code.
list(REMOVE_ITEM warnings -Wpedantic -Wconversion)
list(JOIN warnings "," warnings)
target_compile_options(starling_options INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${warnings}>"
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${STARLING_WERROR}>>:-Werror=all-warnings>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms about string concatenation when optimising: gcc's PR105651.
  target_compile_options(starling_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-maybe-uninitialized>")
endif()
if(STARLING_SANITIZE)
  target_compile_options(starling_options INTERFACE -fsanitize=${STARLING_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(starling_options INTERFACE -fsanitize=${STARLING_SANITIZE})
  target_compile_definitions(starling_options INTERFACE STARLING_SANITIZED)
endif()

function(starling_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(starling_${name} STATIC ${ARG_SOURCES})
  add_library(starling::${name} ALIAS starling_${name})
  set_target_properties(starling_${name} PROPERTIES EXPORT_NAME ${name}
    POSITION_INDEPENDENT_CODE ON)
  target_compile_features(starling_${name} PUBLIC cxx_std_20)
  target_include_directories(starling_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(starling_${name} PUBLIC ${ARG_PUBLIC}
    PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:starling_options>)
  set_property(GLOBAL APPEND PROPERTY STARLING_LIBRARIES starling_${name})
endfunction()

function(starling_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} starling_options)
  set_property(GLOBAL APPEND PROPERTY STARLING_PROGRAMS ${name})
endfunction()

# Defined even without tests of that kind, so that a build may always ask for it.
add_custom_target(sanitizer_tests)

function(starling_test name)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_LABEL MATCHES "^(unit|scenario|live|slow)$")
    message(FATAL_ERROR "${name}: '${ARG_LABEL}' is no label; valid: unit, scenario, live, slow")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} starling_options GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  # A header rather than definitions: a path in the flags would keep clones from sharing a cache.
  set(paths ${PROJECT_BINARY_DIR}/test_paths.hpp)
  file(CONFIGURE OUTPUT ${paths} @ONLY CONTENT [[
#define STARLING_SOURCE_DIR "@PROJECT_SOURCE_DIR@"
#define STARLING_DATA_DIR "@PROJECT_SOURCE_DIR@/../shared/data"
]])
  target_compile_options(${name} PRIVATE "SHELL:-include ${paths}")
  # The tests' own code need not be fast: compiling it takes half as long so.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  if(ARG_LABEL MATCHES "^(unit|scenario)$" OR
      (ARG_LABEL STREQUAL live AND NOT ARG_PREFIX AND STARLING_SANITIZE MATCHES address))
    add_dependencies(sanitizer_tests ${name})
  elseif(STARLING_SANITIZE)
    return()
  endif()
  if(NOT ARG_PREFIX)
    set(ARG_PREFIX ${ARG_LABEL})
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 600)
endfunction()
