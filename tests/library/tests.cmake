# The library as other programs see it: these know its public headers alone, and
# are linked with the shared library.
foreach(name train jobs runs)
    add_executable(test_library_${name} library/test_${name}.c)
    target_include_directories(test_library_${name} PRIVATE
                               ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(test_library_${name} PRIVATE paceline_shared
                          ${CMOCKA} m)
    add_test(NAME library.${name} COMMAND test_library_${name})
    set_tests_properties(library.${name} PROPERTIES LABELS unit TIMEOUT 300)
endforeach()

# Races between the end of a training and the start of the next are rare.
if(CMAKE_C_FLAGS MATCHES "-fsanitize=thread")
    set_tests_properties(library.train PROPERTIES TIMEOUT 600
                         ENVIRONMENT PACELINE_STARTS=1000)
endif()

pl_check(symbols ${PYTHON3} tools/check_symbols.py .
         $<TARGET_FILE:paceline_shared>)

# The programs of the manual.  A sanitized library needs the sanitizer's flags in
# every program that links it.
separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
add_test(NAME library.docs
         COMMAND ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/library/docs.py
                 ${PROJECT_SOURCE_DIR}/docs/library.md
                 ${PROJECT_SOURCE_DIR}/include
                 $<TARGET_FILE:paceline_shared> ${CMAKE_C_COMPILER} ${flags})
set_tests_properties(library.docs PROPERTIES LABELS example TIMEOUT 300)
