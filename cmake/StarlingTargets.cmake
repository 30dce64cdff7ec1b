# starling_library(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...]) defines starling_NAME with the alias
# and the exported name starling::NAME. PUBLIC and PRIVATE are the libraries it links.
# starling_test(NAME LABEL unit|scenario|live|slow SOURCES ... LIBRARIES ...) defines one test program
# whose cases ctest runs one by one.

add_library(starling_options INTERFACE)
target_compile_features(starling_options INTERFACE cxx_std_20)
target_compile_options(starling_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wnon-virtual-dtor -Woverloaded-virtual $<$<BOOL:${STARLING_WERROR}>:-Werror>)
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

function(starling_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} starling_options GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    STARLING_SOURCE_DIR="${PROJECT_SOURCE_DIR}" STARLING_DATA_DIR="${PROJECT_SOURCE_DIR}/../shared/data")
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_LABEL}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 600)
endfunction()
