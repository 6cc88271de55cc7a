# Whole jobs in one process under a seed; not part of the library.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/sim*.c)
add_library(paceline_sim STATIC ${sources})
target_include_directories(paceline_sim PUBLIC ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(paceline_sim PUBLIC paceline_lib)
add_executable(paceline-sim ${CMAKE_CURRENT_LIST_DIR}/main.c)
target_link_libraries(paceline-sim PRIVATE paceline_sim)
