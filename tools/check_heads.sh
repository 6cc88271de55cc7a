#!/bin/sh
# check_heads.sh - every .c file of src opens with what it decides.
set -eu
cd "$(dirname "$0")/.."
find src -name '*.c' -exec sh -c '
    found=0
    for file; do
        IFS= read -r first <"$file"
        case $first in
        "/* "?*) ;;
        *) echo "$file: does not open with a comment"; found=1 ;;
        esac
    done
    exit $found' sh {} +
