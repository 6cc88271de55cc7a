#!/bin/sh
# check_arm64.sh - every source compiles for arm64, with the flags of the
# build and the portable kernels.
#
# usage: tools/check_arm64.sh       needs aarch64-linux-gnu-gcc
set -eu
cd "$(dirname "$0")/.."
flags="-std=c11 -D_GNU_SOURCE -DPL_VERSION=\"0\" -Iinclude -Isrc -Wall -Wextra
    -Wconversion -Wshadow -Werror -ffp-contract=off -fno-math-errno -O1"
# The libraries' headers are the same for all machines.
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
for header in zlib.h zconf.h jansson.h jansson_config.h openssl sodium.h curl \
    sodium microhttpd.h protobuf-c; do
    for folder in /usr/include /usr/include/x86_64-linux-gnu; do
        [ ! -e $folder/$header ] || cp -r $folder/$header "$headers"
    done
done
cp -r /usr/include/dnnl*.h /usr/include/oneapi "$headers"
cp "$(pkg-config --variable=includedir ompi-c)"/mpi*.h "$headers"
protoc-c --proto_path=src/proto --c_out="$headers" src/proto/event.proto
for source in $(find src -name '*.c'); do
    extra=
    case $source in
    src/kernels/simd/*) extra="-DPL_ISA=portable -DPL_LANES=4" ;;
    src/observe/report/assets.c) # any file will do
        for asset in STYLE SCRIPT LIVE FIGURES DRAWINGS; do
            extra="$extra -DPL_ASSET_$asset=\"tools/check_arm64.sh\""
        done ;;
    esac
    # Word splitting is wanted: several flags in one variable.
    # shellcheck disable=SC2086
    aarch64-linux-gnu-gcc $flags $extra -I"$headers" -c "$source" -o /dev/null
done
