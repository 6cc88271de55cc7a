# Each tests/fault/test_<what>.py disturbs jobs of real processes and is
# fault.<what>; those in network namespaces need root and say so without.
set(here ${CMAKE_CURRENT_SOURCE_DIR}/fault)
file(GLOB sources CONFIGURE_DEPENDS ${here}/test_*.py)
foreach(source ${sources})
    string(REGEX REPLACE ".*/test_(.*)\\.py" "\\1" name ${source})
    add_test(NAME fault.${name}
             COMMAND ${CMAKE_SOURCE_DIR}/build/venv/bin/python -B -m pytest
                     -q -rs -p no:cacheprovider
                     --basetemp=${CMAKE_BINARY_DIR}/pytest/fault-${name}
                     -o tmp_path_retention_policy=failed ${source})
    set(environment PACELINE=$<TARGET_FILE:paceline>
                    FAULT_TABLE=${CMAKE_BINARY_DIR}/fault-${name}.txt)
    set_tests_properties(fault.${name} PROPERTIES LABELS fault TIMEOUT 900
                         ENVIRONMENT "${environment}" RUN_SERIAL TRUE)
    if(name MATCHES "^slow_")
        set_tests_properties(fault.${name} PROPERTIES LABELS slow)
    endif()
endforeach()
