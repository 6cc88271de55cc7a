#!/bin/sh
# check_words.sh - what no text file of the repository may contain.
#
#   a tab in C or C++           blanks at the end of a line
#   a to-do without an issue    a path of somebody's machine
#
# Looks at what git tracks or would track; without git at all files.
set -eu
cd "$(dirname "$0")/.."
list=$(mktemp)
trap 'rm -f "$list"' EXIT

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard
else
    find . -type f -not -path './build*' -not -path './.git/*' |
        sed 's,^\./,,'
fi | while IFS= read -r file; do
    [ -f "$file" ] && printf '%s\n' "$file"
done >"$list"

found=0
# look WHAT FILES-PATTERN GREP-PATTERN: report each line of a matching file
# (binary files aside) that matches.
look() {
    lines=$(grep -E "$2" "$list" | tr '\n' '\0' |
        xargs -0 -r grep -nIHE -e "$3" --) || true
    [ -n "$lines" ] || return 0
    printf '%s\n' "$lines" | sed "s/\$/   <- $1/"
    found=1
}

tab=$(printf '\t')
todo=TO''DO # in two parts, so as not to find itself
text='\.(c|h|cpp|hpp|py|sh|md|txt|cmake|json|yml)$|(^|/)(Makefile|run)$'
look "a tab" '\.(c|h|cpp|hpp)$' "$tab"
look "blanks at the end" "$text" "[ $tab]+\$"
look "write $todo(#12), the number of its issue" '\.(c|h|cmake|py|sh)$' \
    "$todo(\$|[^(]|[(][^#])"
look "a path of one machine" '.' \
    '(^|[^A-Za-z0-9_.}~-])/(work|root|home/[a-z0-9_]+)/'
exit $found
