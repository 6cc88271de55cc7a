#!/bin/sh
# tidy.sh - clang-tidy over the sources, one process a core.
#
# usage: tools/tidy.sh BUILD-FOLDER      needs its compile_commands.json
#
# Prints the findings only; exit 1 when there are any.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build-clang}
[ -f "$folder/compile_commands.json" ] || {
    echo "tidy: $folder/compile_commands.json is not there" >&2
    exit 1
}

# clang-tidy counts the warnings it suppressed on standard error: noise.
find src -name '*.c' | sort |
    xargs -P "$(nproc)" -n 1 sh -c '
        clang-tidy --quiet -p "$0" "$1" 2>/dev/null || {
            echo "tidy: $1" >&2
            exit 1
        }' "$folder" || {
    echo "tidy: clang-tidy has findings" >&2
    exit 1
}
echo "tidy: no findings"
