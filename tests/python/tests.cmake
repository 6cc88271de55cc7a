# Each tests/python/test_<what>.py drives the package `paceline` over the shared
# library and is python.<what>.  Those of NumPy alone run with build/venv; what
# needs scikit-learn, SciPy or pyarrow is slow_* and runs with build/venv-long.
# A sanitized library cannot be loaded into a Python without the sanitizer.
if(CMAKE_C_FLAGS MATCHES "-fsanitize")
    return()
endif()
set(here ${CMAKE_CURRENT_SOURCE_DIR}/python)
set(environment "PACELINE=$<TARGET_FILE:paceline>"
    "PACELINE_LIBRARY=$<TARGET_FILE:paceline_shared>"
    "PYTHONPATH=${CMAKE_SOURCE_DIR}/python" "CC=${CMAKE_C_COMPILER}")
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pytest)
file(GLOB sources CONFIGURE_DEPENDS ${here}/test_*.py)
foreach(source ${sources})
    string(REGEX REPLACE ".*/test_(.*)\\.py" "\\1" name ${source})
    set(label python)
    set(venv venv)
    if(name MATCHES "^slow_")
        set(label slow)
        set(venv venv-long)
    endif()
    add_test(NAME python.${name}
             COMMAND ${CMAKE_SOURCE_DIR}/build/${venv}/bin/python -B -m pytest
                     -q -p no:cacheprovider
                     --basetemp=${CMAKE_BINARY_DIR}/pytest/python-${name}
                     -o tmp_path_retention_policy=failed ${source})
    set_tests_properties(python.${name} PROPERTIES LABELS ${label} TIMEOUT 900
                         ENVIRONMENT "${environment}")
endforeach()
