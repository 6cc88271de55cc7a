#!/bin/sh
# setup.sh - install what is missing to build or to test (Debian 12 and 13).
#
# usage: tools/setup.sh build | test | long | release
#
# Asks dpkg first and stays quiet, without needing root, when everything is
# there.  `test` also makes build/venv, the Python the tests run with, from
# tools/requirements.txt; `long` build/venv-long, with the libraries whose
# files we exchange, from tools/requirements-long.txt.  pip takes only
# files whose hashes stand there.  PL_SKIP_SETUP=1: check and install nothing.
set -eu
cd "$(dirname "$0")/.."

build_packages="build-essential cmake ninja-build pkg-config zlib1g-dev
    libjansson-dev libssl-dev libsodium-dev libdnnl-dev libzstd-dev
    libcurl4-openssl-dev libmicrohttpd-dev libopenmpi-dev openmpi-bin
    libprotobuf-c-dev protobuf-c-compiler libpng-dev libturbojpeg0-dev"
test_packages="libcmocka-dev clang clang-format clang-tidy
    libclang-rt-dev|libclang-rt-14-dev python3 python3-venv iproute2 gnuplot-nox
    groff-base strace zsh"
long_packages="chromium gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    openssh-server openssh-client slurm-wlm munge"
release_packages="debhelper dh-python dpkg-dev lintian debootstrap
    python3-all"

die() {
    echo "setup: $*" >&2
    exit 1
}

is_installed() {
    state=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) || return
    case $state in
    installed*) ;;
    *) return 1 ;;
    esac
}

# One name a line of what is missing.  "a|b" is there when either is; a is the
# one to install, which each supported release has.
missing_of() {
    for package in "$@"; do
        wanted=${package%%|*}
        for name in $(echo "$package" | tr '|' ' '); do
            is_installed "$name" && wanted=
        done
        [ -z "$wanted" ] || echo "$wanted"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    elif [ -t 0 ]; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

install_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "setup: not a Debian system; these must be there:" "$@" >&2
        return
    fi
    missing=$(missing_of "$@" | paste -s -d ' ')
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        die "missing packages: $missing; run as root: apt-get install $missing"
    fi
    echo "setup: installing $missing"
    as_root apt-get -qq update || die "apt-get update failed"
    # Word splitting is wanted: one argument a package.
    # shellcheck disable=SC2086
    as_root apt-get -qq install -y --no-install-recommends $missing \
        </dev/null >/dev/null || die "apt-get install failed: $missing"
}

# What a venv was made from; another Python or list makes it stale.
venv_recipe() {
    /usr/bin/python3 --version
    cat "$1"
}

# make_venv FOLDER REQUIREMENTS [FLAG OF PIP]
make_venv() {
    if [ -x "$1/bin/python" ] &&
        venv_recipe "$2" | cmp -s - "$1/recipe"; then
        return
    fi
    echo "setup: making $1"
    rm -rf "$1"
    mkdir -p build
    /usr/bin/python3 -m venv "$1" || die "cannot make $1"
    "$1/bin/python" -m pip install -q --disable-pip-version-check \
        ${3:-} -r "$2" || die "pip cannot install $2"
    venv_recipe "$2" >"$1/recipe"
}

[ "${PL_SKIP_SETUP:-0}" = 0 ] || exit 0
# Word splitting is wanted here too.
# shellcheck disable=SC2086
case ${1:-} in
build)
    install_packages $build_packages
    ;;
test)
    install_packages $build_packages $test_packages
    make_venv build/venv tools/requirements.txt --require-hashes
    ;;
long)
    install_packages $build_packages $test_packages $long_packages
    make_venv build/venv tools/requirements.txt --require-hashes
    make_venv build/venv-long tools/requirements-long.txt --require-hashes
    ;;
release)
    install_packages $build_packages $release_packages
    ;;
*)
    die "usage: tools/setup.sh build | test | long | release"
    ;;
esac
