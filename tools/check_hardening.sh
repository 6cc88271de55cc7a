#!/bin/sh
# check_hardening.sh - does a program have the protections of
# cmake/hardening.cmake?  One line for each that is missing.
#
# usage: tools/check_hardening.sh PROGRAM
set -eu
program=$1
bad=0

missing() {
    echo "$program: $*"
    bad=1
}

# The output of readelf goes through a file: grep -q would close a pipe early.
found=$(mktemp)
trap 'rm -f "$found"' EXIT
look() {
    LC_ALL=C readelf "$@" "$program" >"$found"
}

look -hW
grep -q 'Type: *DYN' "$found" || missing "not position independent (PIE)"
look -lW
grep -q GNU_RELRO "$found" || missing "no RELRO"
grep -q 'GNU_STACK.* RW ' "$found" || missing "the stack can be executed"
look -dW
grep -qE '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' "$found" ||
    missing "RELRO is not full: no BIND_NOW"
grep -qE '\(FLAGS_1\).*PIE' "$found" || missing "not linked as PIE"
grep -q TEXTREL "$found" && missing "code has relocations (TEXTREL)"
look --dyn-syms -W
grep -q __stack_chk_fail "$found" || missing "no stack protector"
grep -qE '__v?snprintf_chk' "$found" || missing "no FORTIFY_SOURCE"

# gcc writes into the debug information how it was called.
look -p .debug_str
grep 'GNU C11' "$found" >"$found.c" || :
for flag in -fstack-protector-strong -fstack-clash-protection; do
    grep -qv -e "$flag" "$found.c" && missing "some files without $flag"
done
rm -f "$found.c"
exit $bad
