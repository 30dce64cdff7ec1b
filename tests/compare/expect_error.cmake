# Runs tools/compare/compare with ARGUMENTS. Fails unless it ends with exit code 2 and prints only
# `compare: MESSAGE`. Requires the variables PYTHON, COMPARE, MESSAGE and ARGUMENTS.
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${PYTHON} ${COMPARE} ${ARGUMENTS}
  RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT status EQUAL 2 OR NOT out STREQUAL "compare: ${MESSAGE}\n")
  message(FATAL_ERROR "exit code ${status}: ${out}")
endif()
