#!/bin/sh
# check_links.sh - each relative link of a Markdown page leads to a file.
#
# usage: check_links.sh FOLDER    exit 1 and one line per link that leads nowhere
#
# first_commands.sh asks it of the installed documents, test_documents.sh of
# those that a package would install.
set -eu
cd "$1"
find . -name '*.md' | while IFS= read -r page; do
    awk '/^```/ { code = !code } !code' "$page" |
        grep -o '](\([^)# ]\{1,\}\)' | sed 's/^](//; /:/d' | sort -u |
        while IFS= read -r link; do
            [ -e "$(dirname "$page")/$link" ] || echo "$page: $link"
        done
done | { ! grep .; }
