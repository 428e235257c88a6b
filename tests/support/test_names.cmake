# Sets `out` to "Suite.Name" for each TEST in a source. The names come from the text, not from running the program: a
# student's library that exits before main must not make tests vanish.
function(read_test_names source out)
  file(READ "${source}" text)
  # What may hold TEST( without being a test, and 1'000, whose quote would start a character.
  set(not_code
    "//[^\n]*"
    "/\\*[^*]*\\*+([^/*][^*]*\\*+)*/"
    "R\"\\([^)]*\\)+([^\")][^)]*\\)+)*\""
    "\"[^\"\\\\]*(\\\\.[^\"\\\\]*)*\""
    "'[^'\\\\\n]*(\\\\.[^'\\\\\n]*)*'"
    "[0-9]('[0-9]+)+")
  string(JOIN "|" not_code ${not_code})
  string(REGEX REPLACE "${not_code}|;" " " text "${text}")
  set(space "[ \t\r\n]*")
  set(word "${space}([A-Za-z0-9_]+)${space}")
  set(test "[^A-Za-z0-9_]TEST${space}\\(${word},${word}\\)")
  string(REGEX MATCHALL "${test}" names "\n${text}")
  list(TRANSFORM names REPLACE "${test}" "\\1.\\2")
  set(${out} "${names}" PARENT_SCOPE)
endfunction()
