#!/bin/sh
# old_cpu.sh PACELINE: the program starts on processors without AVX-512 and
# without AVX, and chooses its kernels by what it finds (emulated).
set -eu
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# train_on CPU RUN: the kernels and the hash of a short training
train_on() {
    qemu-x86_64 -cpu "$1" "$program" train softmax --data synthetic \
        --examples 1000 --steps 20 --quiet --json --run "$folder/$2" \
        2>"$folder/errors" |
        sed 's/.*"kernels":"\([a-z0-9]*\)".*"parameters_sha256":"\([0-9a-f]*\)".*/\1 \2/'
}

expect() {
    case $2 in
    "$1 "*) echo "$2" ;;
    *)
        echo "expected kernels $1, found: $2" >&2
        cat "$folder/errors" >&2
        exit 1
        ;;
    esac
}

expect portable "$(train_on core2duo old)"
first=$(expect avx2 "$(train_on Haswell haswell)")
second=$(expect avx2 "$(train_on Broadwell broadwell)")
[ "$first" = "$second" ] || {
    echo "one instruction set, two results: $first, $second" >&2
    exit 1
}
