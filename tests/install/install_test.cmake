# Requires the variables BUILD, SOURCE, WORK, COMPILER and GENERATOR, which CMakeLists.txt sets.
file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)

# Runs a command; fails with its output if it fails.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " line)
    message(FATAL_ERROR "failed with ${status}: ${line}\n${out}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# Installed files must not refer to the tree that they were built from.
file(GLOB_RECURSE package_files ${prefix}/*.cmake)
foreach(package_file IN LISTS package_files)
  file(READ ${package_file} text)
  string(FIND "${text}" "${SOURCE}/" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${package_file} names the source tree ${SOURCE}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/outside -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/outside)
run(${prefix}/bin/starling --help)
file(GLOB_RECURSE unit ${prefix}/starling-node.service)
file(STRINGS ${unit} command REGEX "^ExecStart=")
if(NOT command MATCHES "^ExecStart=${prefix}/bin/starling ")
  message(FATAL_ERROR "the service starts another program: ${command}")
endif()
