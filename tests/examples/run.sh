#!/bin/sh
# run.sh PROGRAM EXPECTED ARGS...: run an example in a fresh folder; its
# output must contain the text EXPECTED.
set -eu
program=$1 expected=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$program" "$@" >output 2>errors || { cat errors output; exit 1; }
grep -q -- "$expected" output || {
    echo "expected: $expected"
    cat output
    exit 1
}
