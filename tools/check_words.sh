#!/bin/sh
# check_words.sh - what no text file of the repository may contain.
#
#   a tab in C or C++           blanks at the end of a line
#   a to-do without an issue    a path of one machine
#   phrasings that are not English, or not the words of the field, in src,
#   include, docs, examples and README (docs/glossary.md has the words); some
#   more in the strings of src and include, which is what the program says
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

# say INSTEAD PATTERN: report a phrasing, and what to write.  The documents
# about the words themselves quote some.
prose='^(src|include|docs|examples)/.*\.(c|h|def|md|js)$|^README\.md$'
say() {
    lines=$(grep -E "$prose" "$list" |
        grep -vE '^docs/(conventions|glossary|options)\.md$' |
        tr '\n' '\0' | xargs -0 -r grep -nIHwEi -e "$2" --) || true
    [ -n "$lines" ] || return 0
    printf '%s\n' "$lines" | sed "s/\$/   <- write: $1/"
    found=1
}

say "restart" 'beg(i|a|u)ns? anew|starts? anew|started anew'
say "again" '(written|drawn|read|made|computed|built|sent) anew'
say "heartbeat" 'hearts?|heart beats?|life signs?'
say "gradient norm" 'length of (a|the) gradients?'
say "a task that starts early" 'who is early|who comes early'
say "a finished worker" 'who is done|who has finished'
say "name the thing" 'what it is of|what they are of'
say "the lost worker" 'a lost one|the dead one'
say "someone named: a process, the user" 'somebody|anyone at all'
say "hosts" 'crews?|gangs?'
say "say which way" 'so in another way|in some way or other'
say "malformed" 'messages were none|messages that are none'
say "not a ..." 'bytes are no|files are no|lines are no'
say "is not a ..." 'is no (manifest|number|flag|text)'
say "earlier checkpoints are unaffected" 'are from before'
say "round trip" 'there and back|to and fro'
say "link, path" 'ways? between'
say "check whether" 'looks? whether|looked whether'
say "continue, resume" 'go(es)? on with|went on with'
say "at the end, finally" 'in the end'
say "towards the last" 'near the end of the run'
say "rendezvous" 'ring meets|meeting of (the|a) ring'
say "status exchange" 'tells? and hears?|word of all'
say "is enough, is correct" 'where it is well|whether it is well'
say "becomes the mean" 'meets? in the middle'
say "accidentally, by mistake" 'out of mistake|by error'
say "depends on" 'depends? of|is dependent of'
say "consists of" 'consists? out of'
say "the same as" 'the same like'
say "for example" 'for instance given|as example'
say "allows a user to" 'allows? to [a-z]+'
say "information" 'informations'
say "software, data" 'softwares|datas'
say "in contrast" 'in the contrary'
say "as soon as" 'so soon as'
say "up to date" 'actual version of the'
say "skips" 'pass(es|ed)? over (up to|bad|broken|such)'
say "already exists" 'is there already'
say "the connection was lost" '(launcher|other end) is gone'
say "in turn, interleaved" 'in turns'
say "would" 'if [a-z]+ would have'
say "until" 'so long until'
say "take into account" 'take in account|took in account'
say "responsible for" 'responsible of'
say "different from" 'different than'
say "interested in" 'interested on'

# message INSTEAD PATTERN: the same in what the program says, its strings.
message() {
    lines=$(grep -E '^(src|include)/.*\.(c|h|def)$' "$list" | tr '\n' '\0' |
        xargs -0 -r grep -nIHEi \
            -e "\"([^\"]*[^[:alnum:]\"_])?($2)([^[:alnum:]\"_][^\"]*)?\"" --) ||
        true
    [ -n "$lines" ] || return 0
    printf '%s\n' "$lines" | sed "s/\$/   <- write: $1/"
    found=1
}

message "continue" 'go(es)? on|going on|went on'
message "after" 'behind'
message "arrived, received, joined" 'came'
message "no task, nothing, someone named" 'nobody|somebody'
message "already there, already exists" '[^ ]*: (is|are) there'
message "describe, name" 'tells? of|told'
message "malformed, not a ..." 'that (is|are) none'
exit $found
