# One lesson: its library (from IMPL), its test program, and its tests in CTest.

include(tests/support/test_names.cmake)
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(STATUS "GoogleTest: no system package, downloading 1.14.0")
  include(FetchContent)
  FetchContent_Declare(googletest
    URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
    URL_HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7)
  set(INSTALL_GTEST OFF)
  FetchContent_MakeAvailable(googletest)
endif()
include(ProcessorCount)
ProcessorCount(cores)

add_library(nanolm_test_support STATIC tests/support/oracle.cpp tests/support/data.cpp)
add_library(nanolm_scratch STATIC tests/support/scratch.cpp)
add_library(nanolm_fresh_data OBJECT tests/support/fresh_data.cpp)
foreach(library nanolm_test_support nanolm_scratch nanolm_fresh_data)
  target_include_directories(${library} PUBLIC include tests)
  target_compile_options(${library} PRIVATE ${own_warnings})
  set_target_properties(${library} PROPERTIES EXCLUDE_FROM_ALL ON)
endforeach()
target_link_libraries(nanolm_fresh_data PRIVATE GTest::gtest)
target_link_libraries(nanolm_test_support PUBLIC GTest::gtest nanolm_scratch ${CMAKE_DL_LIBS})

# add_tests(PREFIX PROGRAM SOURCE ID TEST_SOURCES LABEL): PREFIX.Builds builds the program, when SOURCE has changed; each
# of its tests is PREFIX.Suite.Name. Their names are left in added_tests. A name that begins with DISABLED_ is of a slow test.
function(add_tests prefix program source id test_sources label)
  add_test(NAME ${prefix}.Builds
    COMMAND ${CMAKE_COMMAND} "-DBUILD=${CMAKE_BINARY_DIR}" -DTARGET=${program} -DJOBS=${cores} "-DSOURCE=${source}"
      "-DID=${id}" -P ${CMAKE_SOURCE_DIR}/tests/support/build.cmake)
  set_tests_properties(${prefix}.Builds PROPERTIES FIXTURES_SETUP ${prefix} RESOURCE_LOCK build LABELS ${label}
    TIMEOUT 600)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test_sources})
  set(added "")
  foreach(test_source IN LISTS test_sources)
    read_test_names("${test_source}" names)
    foreach(name IN LISTS names)
      set(slow "")
      if(name MATCHES "\\.DISABLED_")
        set(slow CONFIGURATIONS slow)  # ctest -C slow -L slow runs it, and nothing else does
      endif()
      add_test(NAME ${prefix}.${name} COMMAND ${program} --gtest_filter=${name} --gtest_color=no ${slow})
      # Not the exit status but GoogleTest's own closing line says "passed": student code may call exit(0).
      set_tests_properties(${prefix}.${name} PROPERTIES FIXTURES_REQUIRED ${prefix} LABELS ${label} TIMEOUT ${test_timeout}
        PASS_REGULAR_EXPRESSION "\\[  PASSED  \\] [1-9]" FAIL_REGULAR_EXPRESSION "Sanitizer: ;runtime error: ")
      if(slow)
        set_tests_properties(${prefix}.${name} PROPERTIES LABELS "${label};slow" TIMEOUT 600
          ENVIRONMENT GTEST_ALSO_RUN_DISABLED_TESTS=1)
      endif()
      list(APPEND added ${prefix}.${name})
    endforeach()
  endforeach()
  set(added_tests ${added} PARENT_SCOPE)
endfunction()

function(add_lesson lesson)
  set(source "${tree}/${lesson}.cpp")
  set(test_source "${CMAKE_SOURCE_DIR}/tests/${lesson}_test.cpp")
  add_library(${lesson} SHARED "${source}")
  if(NOT EXISTS "${source}")
    message(WARNING "${lesson}.cpp is missing in ${tree}: that lesson cannot be graded.")
    # Else the missing file stops every lesson here, instead of this one when it is built.
    set_source_files_properties("${source}" PROPERTIES GENERATED ON)
  endif()
  # The identity of what was compiled. Time stamps do not tell a tree that was swapped for an older one.
  set(id "${CMAKE_BINARY_DIR}/ids/${lesson}")
  set(SOURCE "${source}")
  set(ID "${id}")
  include(${CMAKE_SOURCE_DIR}/tests/support/identify.cmake)
  set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${id}")
  target_include_directories(${lesson} PUBLIC include)
  # Messages start at the tree's name ("exercises/03_online_softmax.cpp:41").
  target_compile_options(${lesson} PRIVATE "-fmacro-prefix-map=${tree_parent}/=" ${tree_warnings})
  if(NOT APPLE)
    target_link_options(${lesson} PRIVATE -Wl,-Bsymbolic)  # calls within a lesson stay in it, whatever is loaded before
  endif()

  add_executable(${lesson}_test EXCLUDE_FROM_ALL "${test_source}")
  target_link_libraries(${lesson}_test PRIVATE ${lesson} nanolm_test_support nanolm_fresh_data GTest::gtest_main)
  # A test needs no speed, and with sanitizers its optimisation takes three times as long as the rest.
  target_compile_options(${lesson}_test PRIVATE ${own_warnings} $<IF:$<BOOL:${NANOLM_SANITIZE}>,-O0,-O1>)

  add_tests(${lesson} ${lesson}_test "${source}" "${id}" "${test_source}" cpu)
endfunction()

# After its tests, ctest prints one line a lesson.
function(add_summary)
  configure_file(${CMAKE_SOURCE_DIR}/tests/support/CTestCustom.cmake.in ${CMAKE_BINARY_DIR}/CTestCustom.cmake @ONLY)
endfunction()
