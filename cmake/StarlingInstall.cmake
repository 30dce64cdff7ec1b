# Rules that install the libraries, programs and headers, and the CMake package that
# find_package(starling) finds.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY STARLING_LIBRARIES)
get_property(programs GLOBAL PROPERTY STARLING_PROGRAMS)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/starling)

# Starling's libraries are static, so a program that links one must also link the external libraries
# that it uses. This list has pairs: a target of an external library, and the call that finds it.
set(dependency_calls
  Threads::Threads "find_dependency(Threads)"
  ZLIB::ZLIB "find_dependency(ZLIB)"
  Libzip::zip "find_dependency(Libzip 1.7)"
  PNG::PNG "find_dependency(PNG 1.6)"
  TurboJPEG::turbojpeg "find_dependency(TurboJPEG)"
  Eigen3::Eigen "find_dependency(Eigen3 3.4 NO_MODULE)"
  CAF::core "find_dependency(CAF 0.17.6)"
  DNNL::dnnl "find_dependency(DNNL)"
  # Only programs that link starling::models_cuda need these.
  CUDA::cudart "find_package(CUDAToolkit 12 QUIET)"
  CUDA::cublas "find_package(CUDAToolkit 12 QUIET)"
  cuDNN::cudnn "find_package(cuDNN 9 QUIET)"
  ZeroMQ::cpp "find_dependency(ZeroMQ 4.3)"
  Sodium::sodium "find_dependency(Sodium 1.0.18)"
  CLI11::CLI11 "find_dependency(CLI11)"
  tomlplusplus::tomlplusplus "find_dependency(tomlplusplus 3.3)"
  fmt::fmt "find_dependency(fmt)"
  nlohmann_json::nlohmann_json "find_dependency(nlohmann_json)")
set(STARLING_FIND_DEPENDENCIES "")
foreach(library IN LISTS libraries)
  get_property(linked TARGET ${library} PROPERTY LINK_LIBRARIES)
  get_property(interface TARGET ${library} PROPERTY INTERFACE_LINK_LIBRARIES)
  list(APPEND linked ${interface})
  list(FILTER linked EXCLUDE REGEX "^(starling::|[$]<|.*::@|dl$)")
  foreach(target IN LISTS linked)
    list(FIND dependency_calls ${target} index)
    if(index EQUAL -1)
      message(FATAL_ERROR "${library} links ${target}: add the call that finds it to dependency_calls in cmake/StarlingInstall.cmake")
    endif()
    math(EXPR index "${index} + 1")
    list(GET dependency_calls ${index} call)
    string(FIND "${STARLING_FIND_DEPENDENCIES}" "${call}" known)
    if(known EQUAL -1)
      string(APPEND STARLING_FIND_DEPENDENCIES "${call}\n")
    endif()
  endforeach()
endforeach()

install(TARGETS ${libraries} EXPORT starlingTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(programs)
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Made when it is installed, because `cmake --install --prefix` changes the path of the program.
  install(CODE "
    get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    get_filename_component(CMAKE_INSTALL_FULL_BINDIR \"${CMAKE_INSTALL_BINDIR}\" ABSOLUTE
      BASE_DIR \"\${prefix}\")
    configure_file(\"${PROJECT_SOURCE_DIR}/tools/starling-node.service.in\"
      \"${PROJECT_BINARY_DIR}/starling-node.service\" @ONLY)")
  install(FILES ${PROJECT_BINARY_DIR}/starling-node.service
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/systemd/system)
endif()
# Headers that begin with "/// Internal" are not installed: they may include headers of external
# libraries that users of Starling need not have.
set(headers starling.hpp)
foreach(folder base barrier models engine actor tools)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/${folder}/*.hpp)
  list(APPEND headers ${found})
endforeach()
foreach(header IN LISTS headers)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} first_line LIMIT_COUNT 1)
  if(NOT first_line MATCHES "^/// Internal")
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/starling/${folder})
  endif()
endforeach()
install(EXPORT starlingTargets NAMESPACE starling:: DESTINATION ${package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/starlingConfig.cmake.in
  ${PROJECT_BINARY_DIR}/starlingConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break users' code.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/starlingConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/starlingConfig.cmake ${PROJECT_BINARY_DIR}/starlingConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake ${PROJECT_SOURCE_DIR}/cmake/FindDNNL.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindcuDNN.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindZeroMQ.cmake ${PROJECT_SOURCE_DIR}/cmake/FindSodium.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindLibzip.cmake ${PROJECT_SOURCE_DIR}/cmake/FindTurboJPEG.cmake
  DESTINATION ${package_dir})
