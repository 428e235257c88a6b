# The Triton exercises: Python files, each with its tests in tests/triton. They need no build; `Builds` asks Python's compiler.

find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "Python 3 is missing: the Triton exercises are left out")
endif()

# add_triton(triton/02_vector_add 0.25): its tests. Those that need Triton are skipped where it is not installed.
function(add_triton unit)
  if(NOT Python3_Interpreter_FOUND)
    return()
  endif()
  set(test_source "${CMAKE_SOURCE_DIR}/tests/${unit}_test.py")
  set(run ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/triton/runner.py "${test_source}" "${tree}/${unit}.py")
  add_test(NAME ${unit}.Builds COMMAND ${run} --builds)
  set_tests_properties(${unit}.Builds PROPERTIES FIXTURES_SETUP ${unit} LABELS triton)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test_source})
  file(STRINGS "${test_source}" names REGEX "^@test\\(\"")
  math(EXPR timeout "3 * ${test_timeout}")  # Triton itself takes some seconds to be read the first time
  foreach(name IN LISTS names)
    string(REGEX REPLACE "^@test\\(\"([A-Za-z0-9_.]+)\"\\).*" "\\1" name "${name}")
    add_test(NAME ${unit}.${name} COMMAND ${run} ${name})
    set_tests_properties(${unit}.${name} PROPERTIES FIXTURES_REQUIRED ${unit} LABELS triton TIMEOUT ${timeout}
      PASS_REGULAR_EXPRESSION "\\[  PASSED  \\] [1-9]" SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
