# What makes a mistake in memory a failure instead of a way in: canaries on the
# stack, checked string functions, guarded stack growth, addresses that are not
# known beforehand, tables of addresses that cannot be written.
#
# All of it is on wherever the compiler has it, but for the sanitizers, which
# bring stronger checks and take some of these for mistakes.
# tools/check_hardening.sh reads the result back from the binary.
include(CheckCCompilerFlag)
include(CheckPIESupported)

add_compile_options(-Wformat=2)

if(CMAKE_C_FLAGS MATCHES "-fsanitize")
    set(PL_HARDENED OFF)
else()
    set(PL_HARDENED ON)
    foreach(flag -fstack-protector-strong -fstack-clash-protection
            -fcf-protection)
        string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
        check_c_compiler_flag(${flag} ${have})
        if(${have})
            add_compile_options(${flag})
        endif()
    endforeach()
    # Level 3 also knows sizes that are computed; without optimization there is
    # none.
    set(level 2)
    if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND
        CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12) OR
       (CMAKE_C_COMPILER_ID STREQUAL "Clang" AND
        CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 14))
        set(level 3)
    endif()
    add_compile_options(-U_FORTIFY_SOURCE
        $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-D_FORTIFY_SOURCE=${level}>)
    check_pie_supported(LANGUAGES C)
    add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()

# Give a target code that may lie anywhere; executables are then linked so.
function(pl_place_anywhere target)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "EXECUTABLE")
        # It also goes into the shared library.  Nobody may put another function
        # in the place of ours, so the compiler need not expect it: what public
        # headers do not declare is hidden.
        target_compile_options(${target} PRIVATE -fPIC -fvisibility=hidden)
    elseif(PL_HARDENED)
        set_target_properties(${target} PROPERTIES
                              POSITION_INDEPENDENT_CODE ON)
    endif()
endfunction()
