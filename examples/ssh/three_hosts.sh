#!/bin/sh
# Train on three hosts that ssh reaches without a password: three workers and
# a parameter server, then the report.
#
#   examples/ssh/three_hosts.sh a b c
#
# The hosts need paceline at the same path as here, or use `launch --copy`,
# which sends it.
set -eu
[ $# = 3 ] || { echo "usage: three_hosts.sh HOST HOST HOST" >&2; exit 2; }
paceline=${PACELINE:-paceline}

"$paceline" doctor --hosts "$1,$2,$3"
"$paceline" launch --hosts "$1,$2,$3" -- train lenet --workers 3 --ps 1 \
    --run runs/three --resume-or-start
"$paceline" report runs/three -o three.html
