#!/bin/sh
# check_sizes.sh - no source file past 800 lines, no folder of src past 20 files:
# it would hold two nouns.
set -eu
cd "$(dirname "$0")/.."
{
    find src include -name '*.[ch]' -exec wc -l {} + |
        awk '$2 != "total" && $1 > 800 {
                 print $2 ": " $1 " lines, more than 800" }'
    find src -type f -name '*.?*' | sed 's|/[^/]*$||' | sort | uniq -c |
        awk '$1 > 20 { print $2 ": " $1 " files, more than 20" }'
} | awk '{ print } END { exit NR > 0 }'
