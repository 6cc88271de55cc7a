# find_package(paceline) gives the targets paceline::shared, and
# paceline::paceline, which is static, so whoever links it links what it uses.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(ZLIB)
find_dependency(PkgConfig)
foreach(library JANSSON:jansson CRYPTO:libcrypto SODIUM:libsodium ZSTD:libzstd
        PROTOBUF_C:libprotobuf-c PNG:libpng TURBOJPEG:libturbojpeg)
    string(REPLACE ":" ";" library ${library})
    list(GET library 0 name)
    list(GET library 1 module)
    if(NOT TARGET PkgConfig::${name})
        pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
    endif()
    if(NOT TARGET PkgConfig::${name})
        set(paceline_FOUND FALSE)
        set(paceline_NOT_FOUND_MESSAGE "paceline needs the library ${module}")
        return()
    endif()
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/paceline-targets.cmake)
# The library loads its modules (MPI) by the run path of the program.
get_filename_component(
    paceline_modules
    "${CMAKE_CURRENT_LIST_DIR}/@package_to_prefix@/lib/paceline" ABSOLUTE)
target_link_options(paceline::paceline INTERFACE
                    "LINKER:-rpath,${paceline_modules}")
