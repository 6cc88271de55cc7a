#!/bin/sh
# fuzz.sh - run each fuzz target of a build folder for a while.
#
# usage: tools/fuzz.sh BUILD-FOLDER SECONDS
#
# Starts from tests/fuzz/corpus/<target>; new inputs stay in the build folder,
# and so does an input that fails, whose name is printed.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build-fuzz}
seconds=${2:-20}
count=0

for target in "$folder"/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    name=${target##*/fuzz_}
    found=$folder/corpus/$name
    count=$((count + 1))
    mkdir -p "$found"
    echo "fuzz: $name for $seconds s"
    "$target" -max_total_time="$seconds" -print_final_stats=0 -verbosity=0 \
        -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$found-failed-" \
        "$found" "tests/fuzz/corpus/$name" </dev/null >"$found.log" 2>&1 || {
        tail -n 60 "$found.log" >&2
        echo "fuzz: $name failed; the input is $found-failed-*" >&2
        exit 1
    }
done
if [ $count = 0 ]; then
    echo "fuzz: $folder has no targets" >&2
    exit 1
fi
echo "fuzz: $count targets, no failures"
