# Lesson 10's instructions: it is compiled for the processor of this machine, and nothing else is.
set(native "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i.86)$" AND NOT CMAKE_CROSSCOMPILING)
  set(native -march=native)  # elsewhere the plain instructions have vectors and multiply-adds: NEON
endif()
set(NANOLM_VECTOR_FLAGS "${native}" CACHE STRING "Compiler flags that choose lesson 10's instructions; empty: any processor")
find_package(Threads REQUIRED)
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "${NANOLM_VECTOR_FLAGS}")
set(CMAKE_REQUIRED_QUIET ON)
check_cxx_source_compiles("#if !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
#error no fused multiply-add
#endif
int main() {}" NANOLM_FUSED_${NANOLM_VECTOR_FLAGS})
unset(CMAKE_REQUIRED_FLAGS)
unset(CMAKE_REQUIRED_QUIET)

function(add_vectors lesson)
  if(NOT TARGET ${lesson})
    return()  # this build is of other lessons
  endif()
  separate_arguments(flags NATIVE_COMMAND "${NANOLM_VECTOR_FLAGS}")
  target_compile_options(${lesson} PRIVATE ${flags})
  target_link_libraries(${lesson} PUBLIC Threads::Threads)
  if(NANOLM_FUSED_${NANOLM_VECTOR_FLAGS})
    target_compile_definitions(${lesson}_test PRIVATE NANOLM_FUSED)  # its slow test asks for one rounding a multiply-add
  endif()
  if(flags)
    message(STATUS "${lesson} is compiled with ${NANOLM_VECTOR_FLAGS}. What is built here may not run on another "
      "processor; -DNANOLM_VECTOR_FLAGS= builds it for any.")
  endif()
endfunction()
