#!/bin/sh
# check_arm64.sh - every source compiles for arm64, with the flags of the
# build and the portable kernels.
#
# usage: tools/check_arm64.sh            needs aarch64-linux-gnu-gcc
#        tools/check_arm64.sh HEADERS SOURCE...      what it starts itself
set -eu
cd "$(dirname "$0")/.."
flags="-std=c11 -D_GNU_SOURCE -DPL_VERSION=\"0\" -DPL_COMMIT=\"\" -Iinclude -Isrc
    -Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off
    -fno-math-errno -O1"
assets=src/observe/report/assets.c

compile() {
    extra=
    case $2 in
    src/kernels/simd/*) extra="-DPL_ISA=portable -DPL_LANES=4" ;;
    "$assets") # any file will do
        for asset in $(grep -o 'PL_ASSET_[A-Z]\+' "$assets" | sort -u); do
            extra="$extra -D$asset=\"tools/check_arm64.sh\""
        done ;;
    esac
    # Word splitting is wanted: several flags in one variable.
    # shellcheck disable=SC2086
    aarch64-linux-gnu-gcc $flags $extra -I"$1" -c "$2" -o /dev/null
}

if [ $# -gt 0 ]; then
    headers=$1
    shift
    for source; do
        compile "$headers" "$source"
    done
    exit 0
fi

# The libraries' headers are the same for all machines.
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
for header in zlib.h zconf.h jansson.h jansson_config.h openssl sodium.h curl \
    sodium microhttpd.h protobuf-c png.h pngconf.h libpng16 turbojpeg.h \
    zstd.h zstd_errors.h zdict.h; do
    for folder in /usr/include /usr/include/x86_64-linux-gnu; do
        [ ! -e $folder/$header ] || cp -r $folder/$header "$headers"
    done
done
cp -r /usr/include/dnnl*.h /usr/include/oneapi "$headers"
cp "$(pkg-config --variable=includedir ompi-c)"/mpi*.h "$headers"
protoc-c --proto_path=src/proto --c_out="$headers" src/proto/*.proto
find src -name '*.c' -print0 |
    xargs -0 -n 8 -P "$(nproc)" tools/check_arm64.sh "$headers"
