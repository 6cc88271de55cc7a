#!/bin/sh
# test_documents.sh - the documents of the package paceline are complete: their
# links work where debhelper puts them, and it renames none of them.
#
# usage: tests/release/test_documents.sh      in the source folder
set -eu
here=$(dirname "$(readlink -f "$0")")
made=$(mktemp -d "${TMPDIR:-/tmp}/paceline-documents.XXXXXX")
trap 'rm -rf "$made"' EXIT
mkdir "$made/examples"

# As dh_installdocs, dh_installexamples and dh_install do; the names in these
# files are patterns, so word splitting is wanted.
# shellcheck disable=SC2046
cp $(cat debian/paceline.docs) "$made"
# shellcheck disable=SC2046
cp -r $(cat debian/paceline.examples) "$made/examples"
sed -n 's, usr/share/doc/paceline/, ,p' debian/paceline.install |
    while read -r from to; do
        mkdir -p "$made/$to"
        # shellcheck disable=SC2086
        cp -r $from "$made/$to"
    done

"$here/check_links.sh" "$made"
[ -f "$made/docs/guide.md" ] || { echo "there is no docs/guide.md"; exit 1; }
for kept in 'dh_compress -X.md' 'dh_installchangelogs -XCHANGELOG.md'; do
    grep -qF -e "$kept" debian/rules || {
        echo "debian/rules: without $kept pages get other names"
        exit 1
    }
done
