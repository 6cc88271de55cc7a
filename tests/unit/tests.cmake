# tests/unit/base/json/test_json.c is built and run as unit.base.json.json.

# pl_unit_target(base/json/json): the program test_base_json_json.
function(pl_unit_target path)
    string(REPLACE / _ target test_${path})
    string(REGEX REPLACE "([^/]+)$" "test_\\1" source ${path})
    add_executable(${target} unit/${source}.c)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${target} PRIVATE
                               PL_GOLDEN="${PROJECT_SOURCE_DIR}/tests/golden")
    target_link_libraries(${target} PRIVATE paceline_lib ${CMOCKA} ZLIB::ZLIB
                          PkgConfig::ZSTD m)
endfunction()

# pl_unit_test(base/json/json [WORD...]): the words start the program.
function(pl_unit_test path)
    string(REPLACE / _ target test_${path})
    string(REPLACE / . name unit.${path})
    pl_unit_target(${path})
    add_test(NAME ${name} COMMAND ${ARGN} $<TARGET_FILE:${target}>)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

set(here ${CMAKE_CURRENT_SOURCE_DIR}/unit)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${here} ${here}/test_*.c)
list(REMOVE_ITEM sources sync/allreduce/mpi/test_mpi.c)
foreach(source ${sources})
    string(REGEX REPLACE "test_([^/]+)\\.c$" "\\1" path ${source})
    pl_unit_test(${path})
endforeach()

set_tests_properties(unit.graph.ops PROPERTIES LABELS "unit;grad")
set_tests_properties(unit.proto.event unit.train.golden PROPERTIES
                     LABELS "unit;golden")
target_link_libraries(test_sim_sim PRIVATE paceline_sim)
target_link_libraries(test_sim_ring PRIVATE paceline_sim)
target_link_libraries(test_sim_scale PRIVATE paceline_sim)

# A file changes when it has just been mapped.
target_link_options(test_data_changed PRIVATE -Wl,--wrap=mmap)

# The supervisor starts real processes.
add_executable(fake_task support/fake_task.c)
target_include_directories(fake_task PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(fake_task PRIVATE paceline_lib)
add_dependencies(test_job_supervise_supervisor fake_task)
target_compile_definitions(test_job_supervise_supervisor PRIVATE
                           FAKE_TASK="$<TARGET_FILE:fake_task>")

# Three ranks and two, started as a user would.  The race detector cannot see
# inside MPI; what MPI leaks at its end is not ours.
if(TARGET paceline-mpi AND NOT CMAKE_C_FLAGS MATCHES "fsanitize=thread")
    pl_unit_target(sync/allreduce/mpi/mpi)
    foreach(ranks 3 2)
        set(name unit.sync.allreduce.mpi.ranks_${ranks})
        add_test(NAME ${name} COMMAND env ASAN_OPTIONS=detect_leaks=0
                 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                 mpirun --oversubscribe --bind-to none -n ${ranks}
                 $<TARGET_FILE:test_sync_allreduce_mpi_mpi>)
        set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
    endforeach()
endif()
