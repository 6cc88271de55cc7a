#!/bin/sh
# install.sh DEBS - install the packages of that folder on a fresh Debian, and
# make the ordinary user who tries them.  Run as root by test_packages.sh and
# by the Containerfile.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends "$1"/*.deb >/dev/null
useradd --create-home --shell /bin/sh paceline
