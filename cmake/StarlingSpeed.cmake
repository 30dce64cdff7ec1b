# Makes builds faster and smaller if Starling is the top-level project: by precompiled headers, by fewer
# garbage collections of the compiler, and by ccache and mold if they are installed.
option(STARLING_PCH "Precompile the headers of other libraries" ${PROJECT_IS_TOP_LEVEL})
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Uses ccache only if its folder is writable: otherwise ccache would fail for every file.
  execute_process(COMMAND sh -c "mkdir -p \"$(${CCACHE_PROGRAM} --get-config cache_dir)/tmp\""
    RESULT_VARIABLE ccache_status OUTPUT_QUIET ERROR_QUIET)
  if(ccache_status EQUAL 0)
    # CCACHE_BASEDIR and CCACHE_NOHASHDIR make paths in the source folder relative, so that all clones
    # share the cache. CCACHE_SLOPPINESS turns off two checks because of which ccache would not cache
    # files that use a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
    if(STARLING_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # ccache needs -fpch-preprocess for files that use a precompiled header. The targets that
      # precompile a header do not get it: the preprocessor would replace the header by its own
      # outdated precompiled file.
      set(precompiles $<BOOL:$<TARGET_PROPERTY:STARLING_PRECOMPILES>>)
      add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:${precompiles}>>:-fpch-preprocess>)
    endif()
  endif()
endif()

# gcc collects garbage for the first time at 1 GiB instead of 128 MiB: a tenth of its time less, for a
# quarter more memory. The largest files take 2.1 GiB then.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR memory_of_processor "${memory} / ${processors}") # in MiB
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND memory_of_processor GREATER 3000)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1048576>")
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold STARLING_LINKER_IS_MOLD)
  if(STARLING_LINKER_IS_MOLD)
    # Debug sections, mostly names, are two thirds of a test program.
    add_link_options(-fuse-ld=mold -Wl,--compress-debug-sections=zlib)
  endif()
endif()
mark_as_advanced(CCACHE_PROGRAM MOLD_PROGRAM)
