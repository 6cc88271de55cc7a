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

# clang-tidy counts the warnings it suppressed on standard error: noise, unless
# it died itself.
find src -name '*.c' | sort |
    xargs -P "$(nproc)" -n 1 sh -c '
        noise=$(clang-tidy --quiet -p "$0" "$1" 2>&1 >&3) || {
            [ $? -lt 128 ] || echo "$noise" | head -n 12 >&2
            echo "tidy: $1" >&2
            exit 1
        }' "$folder" 3>&1 || {
    echo "tidy: clang-tidy has findings" >&2
    exit 1
}
echo "tidy: no findings"
