# Configures nvcc/ twice with a program in place of nvcc that compiles nothing, and notes its arguments.
# It must get the host compiler and the flags, also from the second configuration, and must stop none.
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/nvcc "#!/bin/sh
echo \"$@\" >> ${WORK}/calls
case \"$*\" in
--version) echo 'nvcc: NVIDIA (R) Cuda compiler driver' ;;
'-v __cmake_determine_cuda') echo '#$ TOP=${WORK}/toolkit' ; exit 1 ;;
*) exit 1 ;;
esac
")
file(MAKE_DIRECTORY ${WORK}/toolkit/nvvm/libdevice)
file(CHMOD ${WORK}/nvcc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
foreach(round first second)
  file(WRITE ${WORK}/calls "")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=CUDAHOSTCXX CUDACXX=${WORK}/nvcc
      ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/tests/install/nvcc -B ${WORK}/build
      -DSOURCE=${SOURCE} -DSTARLING_CUDA=AUTO -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_CUDA_HOST_COMPILER=${COMPILER} -DCMAKE_CUDA_FLAGS=-allow-unsupported-compiler
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${round} configuration: failed with STARLING_CUDA=AUTO:\n${output}")
  endif()
  file(READ ${WORK}/calls calls)
  foreach(argument -ccbin=${COMPILER} -allow-unsupported-compiler)
    string(FIND "${calls}" ${argument} at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${round} configuration: nvcc did not get ${argument}; it got:\n${calls}")
    endif()
  endforeach()
  string(FIND "${output}" "there is no nvcc that works with ${COMPILER}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${round} configuration: does not say what does not work:\n${output}")
  endif()
endforeach()
