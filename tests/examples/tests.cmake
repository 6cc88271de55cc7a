# Every program in examples/ runs, and its output is looked at.
function(pl_example_test name program expected)
    add_test(NAME example.${name}
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/examples/run.sh
                     $<TARGET_FILE:${program}> ${expected} ${ARGN})
    set_tests_properties(example.${name} PROPERTIES LABELS example
                         TIMEOUT 300)
endfunction()

pl_example_test(two_layer two_layer "\"stopped_by\":\"steps\""
                train two_layer --data synthetic --examples 2000 --steps 100
                --hidden 32 --activation tanh --quiet --json --run run)
pl_example_test(two_layer_models two_layer "hidden.*25120" models two_layer
                --hidden 32)
pl_example_test(two_layer_builtin two_layer "softmax: 20 steps"
                train softmax --data synthetic --examples 2000 --steps 20
                --quiet)

# What is installed can be built against.  A sanitized library would need the
# sanitizer's flags in every program that links it.
if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
    add_test(NAME install.program
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/examples/install.sh
                     ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                     ${CMAKE_C_COMPILER})
    set_tests_properties(install.program PROPERTIES LABELS example
                         TIMEOUT 300)
endif()
pl_example_test(three_blocks three_blocks "\"stopped_by\":\"steps\""
                train three_blocks --data synthetic --examples 500 --steps 20
                --quiet --json --run run)
pl_example_test(residual residual "\"stopped_by\":\"steps\""
                train residual --data synthetic --examples 500 --steps 10
                --workers 2 --engine ring --threads 1 --quiet --json --run run)
