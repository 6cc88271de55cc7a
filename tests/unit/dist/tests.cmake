pl_unit_test(dist chaos)
pl_unit_test(dist cluster)
pl_unit_test(dist cluster_reach)
pl_unit_test(dist control)
pl_unit_test(dist mpirun)
pl_unit_test(dist hosts)
pl_unit_test(dist talk)
pl_unit_test(dist matmul_placement)
pl_unit_test(dist matmul_worker)
foreach(noun allreduce_sync buckets identity pieces ps_client ps_core ps_members ps_network ps_servers ps_settle ps_share ps_update ring_core ring_engine)
    pl_unit_test(dist ${noun})
endforeach()
pl_unit_test(dist ps_recorder)
target_link_libraries(test_dist_ps_recorder PRIVATE m)
pl_unit_test(dist ps_lives)
pl_unit_test(dist ps_faults)
pl_unit_test(dist ps_leases)
pl_unit_test(dist ps_save)
pl_unit_test(dist ps_store)
pl_unit_test(dist key_batch)
pl_unit_test(dist key_list)
pl_unit_test(dist ps_sparse)
pl_unit_test(dist sim)
target_link_libraries(test_dist_sim PRIVATE paceline_sim)

# The supervisor starts real processes.
pl_unit_test(dist local)
add_executable(fake_task support/fake_task.c)
target_include_directories(fake_task PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(fake_task PRIVATE paceline_lib)
add_dependencies(test_dist_local fake_task)
target_compile_definitions(test_dist_local PRIVATE
                           FAKE_TASK="$<TARGET_FILE:fake_task>")

# Three ranks and two, started as a user would.  The race detector cannot see inside
# MPI; what MPI leaks at its end is not ours.
if(TARGET paceline-mpi AND NOT CMAKE_C_FLAGS MATCHES "fsanitize=thread")
    pl_unit_test(dist mpi env ASAN_OPTIONS=detect_leaks=0
                 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                 mpirun --oversubscribe --bind-to none -n 3)
    add_test(NAME unit.dist.mpi_two COMMAND env ASAN_OPTIONS=detect_leaks=0
             OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
             mpirun --oversubscribe --bind-to none -n 2
             $<TARGET_FILE:test_dist_mpi>)
    set_tests_properties(unit.dist.mpi_two PROPERTIES LABELS unit TIMEOUT 300)
endif()
