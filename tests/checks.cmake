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
pl_check(commits ${PYTHON3} tools/check_commit.py --log 50)
