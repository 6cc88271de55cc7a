# A fuzz target is fuzz/fuzz_<name>.c with LLVMFuzzerTestOneInput and a folder
# fuzz/corpus/<name> of inputs.  Every build replays the corpus, with cut and
# changed copies of each input, as the test fuzz.<name>; PL_FUZZ also builds
# fuzz_<name>, which searches for new inputs (make fuzz).
set(here ${CMAKE_CURRENT_SOURCE_DIR}/fuzz)
file(GLOB sources CONFIGURE_DEPENDS ${here}/fuzz_*.c)
add_custom_target(fuzz)
if(PL_FUZZ)
    target_compile_options(paceline_lib PRIVATE -fsanitize=fuzzer-no-link)
endif()

function(pl_fuzz_executable target)
    add_executable(${target} ${ARGN})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${target} PRIVATE paceline_lib)
endfunction()

foreach(source ${sources})
    string(REGEX REPLACE ".*/fuzz_(.*)\\.c" "\\1" name ${source})
    pl_fuzz_executable(replay_${name} ${source} ${here}/replay.c)
    add_test(NAME fuzz.${name}
             COMMAND replay_${name} ${here}/corpus/${name})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
    if(PL_FUZZ)
        pl_fuzz_executable(fuzz_${name} ${source})
        target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        add_dependencies(fuzz fuzz_${name})
    endif()
endforeach()

# An input is up to three runs, of which a report, a comparison and a page are
# made: 100 times the work of a parser.
target_compile_definitions(replay_report PRIVATE POSITIONS=192)
