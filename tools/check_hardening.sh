#!/bin/sh
# check_hardening.sh - do programs and shared libraries have the protections of
# cmake/hardening.cmake?  One line for each that is missing.
#
# usage: tools/check_hardening.sh FILE...
set -eu
bad=0

missing() {
    echo "$file: $*"
    bad=1
}

# The output of readelf goes through a file: grep -q would close a pipe early.
found=$(mktemp)
trap 'rm -f "$found" "$found.c"' EXIT
look() {
    LC_ALL=C readelf "$@" "$file" >"$found"
}

# gcc writes into the debug information how it was called; clang does not.
check_flags() {
    look -p .comment
    grep -q clang "$found" && return
    look -p .debug_str 2>/dev/null || :
    grep 'GNU C11' "$found" >"$found.c" || {
        missing "no debug information (-g): the compiler's flags are unknown"
        return
    }
    for flag in -fstack-protector-strong -fstack-clash-protection; do
        grep -qv -e "$flag" "$found.c" && missing "some files without $flag"
    done
    return 0
}

check() {
    look -lW
    grep -q GNU_RELRO "$found" || missing "no RELRO"
    grep -q 'GNU_STACK.* RW ' "$found" || missing "the stack can be executed"
    program=false
    grep -q INTERP "$found" && program=true
    look -hW
    grep -q 'Type: *DYN' "$found" || missing "not position independent (PIE)"
    look -dW
    grep -qE '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' "$found" ||
        missing "RELRO is not full: no BIND_NOW"
    ! $program || grep -qE '\(FLAGS_1\).*PIE' "$found" ||
        missing "not linked as PIE"
    grep -q TEXTREL "$found" && missing "code has relocations (TEXTREL)"
    look --dyn-syms -W
    grep -q __stack_chk_fail "$found" || missing "no stack protector"
    grep -qE '__v?snprintf_chk' "$found" || missing "no FORTIFY_SOURCE"
    check_flags
}

for file; do
    check
done
exit $bad
