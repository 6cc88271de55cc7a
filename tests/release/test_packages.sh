#!/bin/sh
# test_packages.sh - install the packages into a fresh Debian, and do there what
# a new user does first, as an ordinary user without the source.
#
# usage: tests/release/test_packages.sh DEBS [SUITE]      as root
#
# DEBS is the folder of `make deb`; SUITE a Debian release (bookworm).
# PL_DEBOOTSTRAP names a folder with a fresh system, which is copied instead of
# made by debootstrap; it is not changed.
set -eu
here=$(dirname "$(readlink -f "$0")")
debs=$(readlink -f "$1") suite=${2:-bookworm}
mirror=${PL_MIRROR:-http://deb.debian.org/debian}
root=$(mktemp -d "${TMPDIR:-/tmp}/paceline-chroot.XXXXXX")

finish() {
    for mounted in proc dev/shm dev; do
        mountpoint -q "$root/$mounted" && umount "$root/$mounted"
    done
    rm -rf --one-file-system "$root"
}
trap finish EXIT

if [ -n "${PL_DEBOOTSTRAP:-}" ]; then
    cp -a "$PL_DEBOOTSTRAP/." "$root"
else
    debootstrap --variant=minbase "$suite" "$root" "$mirror" >/dev/null
fi
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero random urandom; do
    cp -a "/dev/$node" "$root/dev/$node"
done
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/debs" "$root/usr/local/lib/paceline-test"
cp "$debs"/*.deb "$root/debs"
cp "$here/install.sh" "$here/first_commands.sh" "$here/check_links.sh" \
    "$root/usr/local/lib/paceline-test"
chroot "$root" /usr/local/lib/paceline-test/install.sh /debs
chroot "$root" su -s /bin/sh -c 'mkdir ~/first && cd ~/first &&
    /usr/local/lib/paceline-test/first_commands.sh' paceline
# What was installed can be removed.
chroot "$root" apt-get -qq purge -y paceline paceline-mpi libpaceline-dev \
    >/dev/null
[ ! -e "$root/usr/bin/paceline" ] || { echo "purge left files" >&2; exit 1; }
echo "test_packages: $suite: good"
