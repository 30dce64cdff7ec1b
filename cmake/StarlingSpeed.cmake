# Makes builds faster, only where this is the top-level project: precompiled headers, and ccache and
# mold where present.
option(STARLING_PCH "Precompile the headers of other libraries" ${PROJECT_IS_TOP_LEVEL})
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A cache that cannot be written would keep every file from being compiled.
  execute_process(COMMAND sh -c "mkdir -p \"$(${CCACHE_PROGRAM} --get-config cache_dir)/tmp\""
    RESULT_VARIABLE ccache_status OUTPUT_QUIET ERROR_QUIET)
  if(ccache_status EQUAL 0)
    # Paths below the source are hashed as relative ones, so that all clones share the cache.
    # ccache takes no files that use a precompiled header unless these two checks are off.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
    if(STARLING_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # Not for what precompiles them: the preprocessor would take a stale result of the same header.
      set(precompiles $<BOOL:$<TARGET_PROPERTY:STARLING_PRECOMPILES>>)
      add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:${precompiles}>>:-fpch-preprocess>)
    endif()
  endif()
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold STARLING_LINKER_IS_MOLD)
  if(STARLING_LINKER_IS_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
mark_as_advanced(CCACHE_PROGRAM MOLD_PROGRAM)
