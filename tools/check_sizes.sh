#!/bin/sh
# check_sizes.sh - no source file past 800 lines: it would hold two nouns.
set -eu
cd "$(dirname "$0")/.."
find src include -name '*.[ch]' -exec wc -l {} + |
    awk '$2 != "total" && $1 > 800 {
             print $2 ": " $1 " lines, more than 800"
             found = 1
         }
         END { exit found }'
