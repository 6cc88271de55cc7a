# Each tests/cli/test_<what>.py drives the real program and is cli.<what>.
# The Python is that of tools/setup.sh test.
set(here ${CMAKE_CURRENT_SOURCE_DIR}/cli)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pytest)
file(GLOB sources CONFIGURE_DEPENDS ${here}/test_*.py)
foreach(source ${sources})
    string(REGEX REPLACE ".*/test_(.*)\\.py" "\\1" name ${source})
    add_test(NAME cli.${name}
             COMMAND ${CMAKE_SOURCE_DIR}/build/venv/bin/python -B -m pytest
                     -q -rs -p no:cacheprovider
                     --basetemp=${CMAKE_BINARY_DIR}/pytest/${name}
                     -o tmp_path_retention_policy=failed ${source})
    set_tests_properties(cli.${name} PROPERTIES LABELS cli TIMEOUT 900
                         ENVIRONMENT PACELINE=$<TARGET_FILE:paceline>)
    if(name MATCHES "^slow_")
        set_tests_properties(cli.${name} PROPERTIES LABELS slow)
    endif()
endforeach()

# The longest ones begin first: else one of them runs alone at the end.
foreach(name ps_loss mpi ring ps_sparse mnist launch resume ps_output sweep)
    set_tests_properties(cli.${name} PROPERTIES COST 100)
endforeach()
