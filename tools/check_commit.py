#!/usr/bin/env python3
"""Check the form of commit messages (docs/conventions.md, Commits).

usage: check_commit.py FILE        one message, as the commit-msg hook has it
       check_commit.py --log N     the last N commits; none is fine

The subject is "module: imperative", at most 60 characters, without a full
stop; the second line is blank.  Prints one line a breach, exit 1 if any.
"""
import pathlib
import re
import subprocess
import sys

SUBJECT_MOST = 60
SUBJECT = re.compile(r"[a-z0-9][a-z0-9_./+-]*(, [a-z0-9][a-z0-9_./+-]*)*: \S")
# First words that tell what was done instead of what to do.
TELLING = re.compile(
    r"(add|fix|chang|remov|updat|us|mov|renam|mak|writ|implement|improv"
    r"|creat|support|allow|test|drop|clean|split|document)(ed|s|es|ing)$")
MACHINE_MADE = ("Merge ", "Revert ", "fixup! ", "squash! ")


def breaches(message):
    """What is wrong with one message, a sentence each."""
    lines = message.splitlines() or [""]
    subject = lines[0]
    if subject.startswith(MACHINE_MADE):
        return
    if not SUBJECT.match(subject):
        yield 'the subject is not "module: imperative"'
    else:
        first = subject.split(": ", 1)[1].split()[0].lower()
        if TELLING.match(first):
            yield f'"{first}": say what to do ("add", not "added")'
    if len(subject) > SUBJECT_MOST:
        yield f"the subject has {len(subject)} characters, " \
              f"more than {SUBJECT_MOST}"
    if subject.endswith("."):
        yield "the subject ends in a full stop"
    if len(lines) > 1 and lines[1].strip():
        yield "the second line is not blank"


def read_hook_file(path):
    """The message without the lines git adds for the editor."""
    text = pathlib.Path(path).read_text()
    kept = [line for line in text.splitlines() if not line.startswith("#")]
    return [("", "\n".join(kept))]


def read_log(count):
    """(short id, message) of the last commits; empty without git."""
    try:
        log = subprocess.run(
            ["git", "log", f"-{count}", "--format=%h%x01%B%x00"],
            capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [tuple(entry.lstrip("\n").split("\x01", 1))
            for entry in log.split("\x00") if entry.strip()]


def main(args):
    if len(args) == 2 and args[0] == "--log":
        messages = read_log(int(args[1]))
    elif len(args) == 1:
        messages = read_hook_file(args[0])
    else:
        sys.exit(__doc__)
    bad = 0
    for commit, message in messages:
        for breach in breaches(message):
            subject = (message.splitlines() or [""])[0]
            print(f"{commit} {subject}: {breach}".lstrip())
            bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main(sys.argv[1:])
