#!/bin/sh
# check_headers.sh - every header stands alone.
#
# Compiles each header under include/ and src/ by itself: those of src as our
# own sources are compiled, those a user includes as plain C11 and as C++17.
set -eu
cd "$(dirname "$0")/.."
cc=${CC:-gcc}
cxx=${CXX:-g++}
warnings="-Wall -Wextra -Wundef -Werror"

# each FOLDER COMMAND...: run the command on every header, one a core.
each() {
    folder=$1
    shift
    find "$folder" -name '*.h' | sort |
        xargs -r -P "$(nproc)" -n 1 "$@" -fsyntax-only
}

# Word splitting of the warnings is wanted.
# shellcheck disable=SC2086
{
    # PL_ISA and PL_LANES: what the build sets for the vector kernels.
    each src "$cc" -x c -std=c11 -D_GNU_SOURCE -DPL_ISA=portable -DPL_LANES=4 \
        $warnings -Iinclude -Isrc
    each include "$cc" -x c -std=c11 -pedantic $warnings -Iinclude
    each include "$cxx" -x c++ -std=c++17 -pedantic $warnings -Iinclude
}
