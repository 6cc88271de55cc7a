#!/bin/sh
# first_commands.sh - what a new user types first, after the packages are
# installed; no source, no root.
#
# usage: first_commands.sh      in a folder that can be written
#
# test_packages.sh runs it in a fresh Debian, the Containerfile while the image
# is built.
set -eu

fail() {
    echo "first commands: $*" >&2
    exit 1
}

[ "$(id -u)" != 0 ] || fail "run it as an ordinary user"
begin=$(date +%s)
paceline --version
paceline 2>nothing && fail "paceline alone must end with status 2"
grep -q "paceline demo" nothing || fail "it does not say what to try first"
paceline train softmax --steps 200 --run runs/alone --quiet --json >alone.json
paceline train softmax --workers 2 --ps 1 --steps 200 --run runs/cluster \
    --quiet --json >cluster.json
grep -q '"stopped_by":"steps"' alone.json || fail "alone: $(cat alone.json)"
grep -q '"workers":2' cluster.json || fail "cluster: $(cat cluster.json)"
echo "to a finished job of three processes: $(($(date +%s) - begin)) s"
paceline eval runs/alone
paceline compare runs
paceline report runs -o report.html
grep -q '</html>' report.html || fail "the report is not complete"
echo "to a report: $(($(date +%s) - begin)) s"
paceline demo --seconds 1 --no-wait </dev/null
for page in /usr/share/man/man1/paceline.1.gz \
    /usr/share/man/man1/paceline-train.1.gz; do
    [ ! -d /usr/share/man/man1 ] || [ -f "$page" ] || fail "$page is missing"
done
[ ! -f /usr/share/doc/paceline/README.md ] ||
    "$(dirname "$0")/check_links.sh" /usr/share/doc/paceline ||
    fail "the documents have links that lead nowhere"
echo "first commands: done in $(($(date +%s) - begin)) s"
