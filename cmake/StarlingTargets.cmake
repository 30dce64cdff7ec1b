# starling_library(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...] [PRECOMPILED KIND]) defines the target
# starling_NAME with the alias and the exported name starling::NAME. PUBLIC and PRIVATE list the
# libraries that it links; KIND is the argument of starling_precompile, by default `standard`.
#
# starling_program(NAME SOURCES ... LIBRARIES ...) defines a program that is installed.
#
# starling_test(NAME LABEL unit|scenario|live|slow [PREFIX ...] [SANITIZERS address|thread|none ...]
# SOURCES ... LIBRARIES ...) defines one test program. ctest runs its cases one by one, as PREFIX.CASE;
# the default prefix is the label. With a sanitizer, the target sanitizer_tests builds the unit and
# scenario tests that SANITIZERS names it for, by default `address thread`. A program that starts no
# thread takes `address`: ThreadSanitizer has nothing to find there. `none` is for tests that look for
# wrong results only. Under AddressSanitizer, the target sanitizer_live_tests builds live tests without
# a PREFIX; those with a PREFIX test whole programs. ThreadSanitizer would report false races in live
# tests, because it does not see how CAF, which is built without it, orders messages.

# Includes are written starling/FOLDER/..., in the source tree as in an installation.
foreach(folder base barrier models engine actor tools starling.hpp)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/starling)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/include/starling/${folder}
    SYMBOLIC)
endforeach()

add_library(starling_options INTERFACE)
target_compile_features(starling_options INTERFACE cxx_std_20)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_UNITY_BUILD)
  # In a unity build, each file sees the constants of the files before it, and counts as included.
  list(REMOVE_ITEM warnings -Wshadow)
  list(APPEND warnings -Wshadow=local -Wno-subobject-linkage)
endif()
target_compile_options(starling_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings};$<$<BOOL:${STARLING_WERROR}>:-Werror>>")
# The host code that nvcc generates does not pass -Wpedantic and contains implicit conversions.
list(REMOVE_ITEM warnings -Wpedantic -Wconversion)
list(JOIN warnings "," warnings)
target_compile_options(starling_options INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${warnings}>"
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${STARLING_WERROR}>>:-Werror=all-warnings>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # When it optimises, gcc warns falsely about std::string (gcc 12, PR105651) and about variants whose
  # alternatives own memory (gcc 14).
  target_compile_options(starling_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;\
-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
endif()
if(STARLING_SANITIZE)
  target_compile_options(starling_options INTERFACE -fsanitize=${STARLING_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(STARLING_SANITIZE MATCHES address)
    # Turns off three checks of UBSan, which take a fifth of the time to compile. AddressSanitizer
    # itself reports accesses through null pointers and beyond objects; wrong dynamic types (vptr) are
    # then not checked.
    target_compile_options(starling_options INTERFACE -fno-sanitize=null,object-size,vptr)
    # The relocations of the places that UBSan can report would be a quarter of a program.
    target_link_options(starling_options INTERFACE -no-pie)
  endif()
  target_link_options(starling_options INTERFACE -fsanitize=${STARLING_SANITIZE})
  target_compile_definitions(starling_options INTERFACE STARLING_SANITIZED)
endif()

# starling_precompile(TARGET KIND) makes a target use the precompiled header
# cmake/precompiled/KIND.hpp. All targets of one kind share it. They need the same macros and options,
# because the compiler refuses a precompiled header that was compiled with others.
set(precompiled_actors CAF::core)
set(precompiled_program CAF::core fmt::fmt nlohmann_json::nlohmann_json
  tomlplusplus::tomlplusplus)
set(precompiled_tests CAF::core GTest::gtest)
set(precompiled_small_tests GTest::gtest)
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
    # The name is quoted so that CMake does not make it an absolute path, with which clones could not
    # share ccache's cache.
    target_precompile_headers(${precompiled} PRIVATE "\"cmake/precompiled/${kind}.hpp\"")
    set_target_properties(${precompiled} PROPERTIES STARLING_PRECOMPILES ON)
    if(kind MATCHES tests)
      target_compile_options(${precompiled} PRIVATE ${tests_options})
    else()
      set_target_properties(${precompiled} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    if(kind STREQUAL program)
      target_compile_options(${precompiled} PRIVATE ${STARLING_PROGRAM_OPTIONS})
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
  if(ARG_PRECOMPILED STREQUAL program)
    target_compile_options(starling_${name} PRIVATE ${STARLING_PROGRAM_OPTIONS})
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

# The paths are in a header rather than in compile definitions, because clones with different paths
# in their flags could not share ccache's cache.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/test_paths.hpp @ONLY CONTENT [[
/// Where the tests find the sources and the real data.
#pragma once

#define STARLING_SOURCE_DIR "@PROJECT_SOURCE_DIR@"
#define STARLING_DATA_DIR "@PROJECT_SOURCE_DIR@/../shared/data"
]])
# The tests' own code need not be fast. -Og instead of -O2 halves the time to compile it. -O0 takes
# longer, because it compiles each inline function that is called. Under AddressSanitizer -O0 saves
# a third. Under ThreadSanitizer, -O0 would save only a tenth, and double the time that the tests run.
set(tests_options $<$<CONFIG:RelWithDebInfo>:-Og>)
if(STARLING_SANITIZE MATCHES address)
  list(APPEND tests_options $<$<CONFIG:Debug>:-O0>)
endif()

# Gives a target that links the libraries the options and the precompiled header of tests.
function(starling_compile_as_test target libraries)
  target_compile_options(${target} PRIVATE ${tests_options})
  target_link_libraries(${target} PRIVATE GTest::gtest)
  if(starling::program IN_LIST libraries)
    target_link_libraries(${target} PRIVATE ${precompiled_program})
    starling_precompile(${target} program_tests)
  elseif(libraries MATCHES "starling::(engine|sim|wire|security|actor|flow_job)")
    starling_precompile(${target} tests)
  else()
    starling_precompile(${target} small_tests)
  endif()
endfunction()

# The targets exist even if no test depends on them, so that they can always be built.
add_custom_target(sanitizer_tests)
add_custom_target(sanitizer_live_tests)

function(starling_test name)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX" "SANITIZERS;SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_SANITIZERS)
    set(ARG_SANITIZERS address thread)
  endif()
  foreach(sanitizer ${ARG_SANITIZERS})
    if(NOT sanitizer MATCHES "^(address|thread|none)$")
      message(FATAL_ERROR "${name}: '${sanitizer}' is not a sanitizer; valid: address, thread, none")
    endif()
  endforeach()
  if(NOT ARG_LABEL MATCHES "^(unit|scenario|live|slow)$")
    message(FATAL_ERROR "${name}: '${ARG_LABEL}' is not a label; valid: unit, scenario, live, slow")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} starling_options GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  starling_compile_as_test(${name} "${ARG_LIBRARIES}")
  if(STARLING_SANITIZE)
    string(REGEX MATCH "address|thread" sanitizer ${STARLING_SANITIZE})
    if(ARG_LABEL MATCHES "^(unit|scenario)$" AND sanitizer IN_LIST ARG_SANITIZERS)
      add_dependencies(sanitizer_tests ${name})
      starling_add_shards(${name} ${ARG_LABEL})
      return()
    elseif(ARG_LABEL STREQUAL live AND NOT ARG_PREFIX AND sanitizer STREQUAL address)
      add_dependencies(sanitizer_live_tests ${name})
    else()
      return()
    endif()
  endif()
  if(NOT ARG_PREFIX)
    set(ARG_PREFIX ${ARG_LABEL})
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 600)
endfunction()

# Runs the tests of a program in eight processes. A sanitizer makes the start of a process take
# longer than most tests, so a process for each test would take most of the time.
function(starling_add_shards name label)
  foreach(shard RANGE 7)
    add_test(NAME ${label}.${name}.${shard} COMMAND ${name})
    set_tests_properties(${label}.${name}.${shard} PROPERTIES LABELS ${label} TIMEOUT 1800
      ENVIRONMENT "GTEST_TOTAL_SHARDS=8;GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
