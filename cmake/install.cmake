# `make install`: the program, the library with its headers, and what lets
# pkg-config and find_package(paceline) find it.  No installed file knows where
# it was built, nor where it lies: paths in it count from its own place.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/paceline)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH package_to_prefix /${package_dir} /)
string(REGEX REPLACE "/$" "" package_to_prefix "${package_to_prefix}")
file(RELATIVE_PATH pkgconfig_to_prefix /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")

install(TARGETS paceline RUNTIME)
if(TARGET paceline-mpi)
    install(TARGETS paceline-mpi LIBRARY
            DESTINATION lib/paceline)
endif()
install(TARGETS paceline_lib EXPORT paceline ARCHIVE
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# It looks for its modules (MPI) by its own run path, not by the program's.
file(RELATIVE_PATH lib_to_modules /${CMAKE_INSTALL_LIBDIR} /lib/paceline)
set_target_properties(paceline_shared PROPERTIES
                      INSTALL_RPATH "$ORIGIN/${lib_to_modules}")
install(TARGETS paceline_shared EXPORT paceline LIBRARY
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/ TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(FILES examples/systemd/paceline-page.service
        DESTINATION lib/systemd/user)

# Manual pages and completions are made by the program, where it can run.
if(NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
    set(documents ${CMAKE_BINARY_DIR}/documents)
    add_custom_command(OUTPUT ${documents}/done
        COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:paceline>
                -DOUT=${documents} -P ${PROJECT_SOURCE_DIR}/cmake/documents.cmake
        DEPENDS paceline cmake/documents.cmake
        COMMENT "Writing manual pages and completions")
    add_custom_target(documents ALL DEPENDS ${documents}/done)
    install(DIRECTORY ${documents}/man1
            DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${documents}/bash/paceline
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${documents}/zsh/_paceline
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
endif()

configure_file(cmake/paceline.pc.in ${CMAKE_BINARY_DIR}/paceline.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/paceline.pc DESTINATION ${pkgconfig_dir})

install(EXPORT paceline NAMESPACE paceline:: FILE paceline-targets.cmake
        DESTINATION ${package_dir})
write_basic_package_version_file(
    ${CMAKE_BINARY_DIR}/paceline-config-version.cmake
    COMPATIBILITY SameMinorVersion)
configure_file(cmake/paceline-config.cmake
               ${CMAKE_BINARY_DIR}/paceline-config.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/paceline-config.cmake
              ${CMAKE_BINARY_DIR}/paceline-config-version.cmake
        DESTINATION ${package_dir})
