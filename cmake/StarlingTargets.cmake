# starling_library(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...] [PRECOMPILED KIND]) defines starling_NAME
# with the alias and the exported name starling::NAME. PUBLIC and PRIVATE are the libraries it links;
# KIND is that of starling_precompile, `standard` unless given.
# starling_program(NAME SOURCES ... LIBRARIES ...) defines a program that is installed.
# starling_test(NAME LABEL unit|scenario|live|slow [PREFIX ...] SOURCES ... LIBRARIES ...) defines one
# test program whose cases ctest runs one by one, as PREFIX.CASE; the label is the prefix unless given.
# Where sanitizers are on, slow tests are left out, and so are programs' (those with a PREFIX). The
# target sanitizer_tests builds the unit and scenario ones, and under AddressSanitizer the live ones
# of the libraries too: ThreadSanitizer does not see how CAF, which is built without it, orders
# messages.

# Includes are written starling/FOLDER/..., in the tree as installed.
foreach(folder base barrier models engine actor tools starling.hpp)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/starling)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/include/starling/${folder}
    SYMBOLIC)
endforeach()

add_library(starling_options INTERFACE)
target_compile_features(starling_options INTERFACE cxx_std_20)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_UNITY_BUILD)
  # Files compiled together see each other's constants, and count as included ones.
  list(REMOVE_ITEM warnings -Wshadow)
  list(APPEND warnings -Wshadow=local -Wno-subobject-linkage)
endif()
target_compile_options(starling_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings};$<$<BOOL:${STARLING_WERROR}>:-Werror>>")
# The host code that nvcc generates is not pedantic, and contains implicit conversions.
list(REMOVE_ITEM warnings -Wpedantic -Wconversion)
list(JOIN warnings "," warnings)
target_compile_options(starling_options INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${warnings}>"
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${STARLING_WERROR}>>:-Werror=all-warnings>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc before 13 warns falsely about string concatenation when optimising (PR105651).
  target_compile_options(starling_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-maybe-uninitialized>")
  if(STARLING_PCH)
    # gcc gives the same false warnings under other names once the header of strings is precompiled.
    target_compile_options(starling_options INTERFACE
      "$<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
  endif()
endif()
if(STARLING_SANITIZE)
  target_compile_options(starling_options INTERFACE -fsanitize=${STARLING_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(STARLING_SANITIZE MATCHES address)
    # AddressSanitizer itself reports accesses through null pointers and beyond objects. Wrong dynamic
    # types (vptr) are then not checked. The three checks take a fifth of the time to compile.
    target_compile_options(starling_options INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
  target_link_options(starling_options INTERFACE -fsanitize=${STARLING_SANITIZE})
  target_compile_definitions(starling_options INTERFACE STARLING_SANITIZED)
endif()

# starling_precompile(TARGET KIND) lets a target use the precompiled header cmake/precompiled/KIND.hpp.
# All targets of one kind share it: the compiler refuses it where macros or options differ.
set(precompiled_actors CAF::core)
set(precompiled_program CAF::core fmt::fmt nlohmann_json::nlohmann_json
  tomlplusplus::tomlplusplus)
set(precompiled_tests CAF::core GTest::gtest)
set(precompiled_program_tests ${precompiled_program} GTest::gtest)
function(starling_precompile target kind)
  if(NOT STARLING_PCH)
    return()
  endif()
  set(precompiled starling_precompiled_${kind})
  if(NOT TARGET ${precompiled})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/precompiled.cpp CONTENT "")
    add_library(${precompiled} OBJECT ${PROJECT_BINARY_DIR}/generated/precompiled.cpp)
    target_include_directories(${precompiled} PRIVATE ${PROJECT_SOURCE_DIR}
      ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(${precompiled} PRIVATE ${precompiled_${kind}} starling_options)
    # The include is quoted, since its absolute path would keep clones from sharing a cache.
    target_precompile_headers(${precompiled} PRIVATE "\"cmake/precompiled/${kind}.hpp\"")
    set_target_properties(${precompiled} PROPERTIES STARLING_PRECOMPILES ON)
    if(kind MATCHES tests)
      target_compile_options(${precompiled} PRIVATE ${tests_options})
    else()
      set_target_properties(${precompiled} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

function(starling_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(starling_${name} STATIC ${ARG_SOURCES})
  add_library(starling::${name} ALIAS starling_${name})
  set_target_properties(starling_${name} PROPERTIES EXPORT_NAME ${name}
    POSITION_INDEPENDENT_CODE ON)
  target_compile_features(starling_${name} PUBLIC cxx_std_20)
  target_include_directories(starling_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(starling_${name} PUBLIC ${ARG_PUBLIC}
    PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:starling_options>)
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED standard)
  endif()
  starling_precompile(starling_${name} ${ARG_PRECOMPILED})
  set_property(GLOBAL APPEND PROPERTY STARLING_LIBRARIES starling_${name})
endfunction()

function(starling_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} starling_options)
  set_property(GLOBAL APPEND PROPERTY STARLING_PROGRAMS ${name})
endfunction()

# Paths are in a header rather than in definitions: a path in the flags would keep clones from
# sharing a cache.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/test_paths.hpp @ONLY CONTENT [[
/// Where the tests find the sources and the real data.
#pragma once

#define STARLING_SOURCE_DIR "@PROJECT_SOURCE_DIR@"
#define STARLING_DATA_DIR "@PROJECT_SOURCE_DIR@/../shared/data"
]])
# The tests' own code need not be fast: -O1 instead of -O2 halves the time to compile it, and -O0 saves a third
# under AddressSanitizer. Under ThreadSanitizer, -O0 would save a tenth, and double the tests' own time.
set(tests_options $<$<CONFIG:RelWithDebInfo>:-O1>)
if(STARLING_SANITIZE MATCHES address)
  list(APPEND tests_options $<$<CONFIG:Debug>:-O0>)
endif()

# The target exists even without tests of that kind, so that a build may always ask for it.
add_custom_target(sanitizer_tests)

function(starling_test name)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_LABEL MATCHES "^(unit|scenario|live|slow)$")
    message(FATAL_ERROR "${name}: '${ARG_LABEL}' is no label; valid: unit, scenario, live, slow")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} starling_options GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_compile_options(${name} PRIVATE ${tests_options})
  if(starling::program IN_LIST ARG_LIBRARIES)
    target_link_libraries(${name} PRIVATE ${precompiled_program})
    starling_precompile(${name} program_tests)
  else()
    starling_precompile(${name} tests)
  endif()
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
