# Checks of the sources themselves; each prints one line a finding.
function(pl_check name)
    add_test(NAME check.${name} COMMAND ${ARGN}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(check.${name} PROPERTIES LABELS check TIMEOUT 300)
endfunction()

find_program(PYTHON3 python3 REQUIRED)
pl_check(layers ${PYTHON3} tools/check_layers.py .)
pl_check(headers tools/check_headers.sh)
pl_check(format tools/check_format.sh)
pl_check(words tools/check_words.sh)
pl_check(sizes tools/check_sizes.sh)
pl_check(heads tools/check_heads.sh)
pl_check(invariants ${PYTHON3} tools/check_invariants.py .)
pl_check(types ${PYTHON3} tools/check_types.py .)
pl_check(flags ${PYTHON3} tools/check_flags.py .)
pl_check(paths ${PYTHON3} tools/check_paths.py .)
pl_check(commits ${PYTHON3} tools/check_commit.py --log 50)
pl_check(documents tests/release/test_documents.sh)
pl_check(setup tests/release/test_setup.sh)

if(PL_HARDENED)
    set(hardened $<TARGET_FILE:paceline> $<TARGET_FILE:paceline_shared>)
    if(TARGET paceline-mpi)
        list(APPEND hardened $<TARGET_FILE:paceline-mpi>)
    endif()
    pl_check(hardening tools/check_hardening.sh ${hardened})
endif()

# Other processors; these need packages of `tools/setup.sh long`.
pl_check(arm64 tools/check_arm64.sh)
set_tests_properties(check.arm64 PROPERTIES LABELS slow)
add_test(NAME compat.old_cpu
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/compat/old_cpu.sh
                 $<TARGET_FILE:paceline>)
set_tests_properties(compat.old_cpu PROPERTIES LABELS slow TIMEOUT 300)
