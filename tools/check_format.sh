#!/bin/sh
# check_format.sh - every C file is as clang-format writes it (make format).
set -eu
cd "$(dirname "$0")/.."
find src include tests bench examples -name '*.[ch]' | sort |
    xargs -r -P "$(nproc)" -n 20 clang-format --dry-run -Werror
