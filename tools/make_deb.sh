#!/bin/sh
# make_deb.sh - build the Debian packages of this tree, in build-deb/.
#
# usage: tools/make_deb.sh
#
# Builds from a copy of what git tracks, so that nothing else gets into a
# package, and ends with lintian, whose errors and warnings are failures.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(paceline VERSION \([0-9.]*\).*/\1/p' \
    CMakeLists.txt)
[ "$(dpkg-parsechangelog -S Version)" = "$version" ] || {
    echo "make_deb: debian/changelog and CMakeLists.txt differ in the version" >&2
    exit 1
}
out=build-deb
tree=$out/paceline-$version
rm -rf "$tree" "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mkdir -p "$tree"
git ls-files -z | xargs -0 cp --parents -t "$tree"
git rev-parse --short=12 HEAD >"$tree/debian/commit"

cd "$tree"
dpkg-buildpackage --unsigned-source --unsigned-changes --build=binary \
    --no-pre-clean "-j$(nproc)" >../build.log 2>&1 || {
    tail -n 40 ../build.log
    echo "make_deb: dpkg-buildpackage failed; see $out/build.log" >&2
    exit 1
}
cd ../..
lintian --no-cfg --fail-on error,warning "$out"/*.changes
ls -l "$out"/*.deb
