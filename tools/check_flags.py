#!/usr/bin/env python3
"""Check that flags are rows with attributes, and stand in no other list.

usage: check_flags.py [REPO]      exit 1 and one line per finding, else silent

A flag of `train` is one row of src/app/options/flags_*.def.  What else is known
of it (where it has an effect, whether it is recorded, agreed on, passed on,
compared ...) stands in that row.  So no other file of src may
  - initialise an array with texts of which most name flags, or
  - compare a text with the name of a flag (strcmp and its like).
Roles and results that are called as flags are need an entry in ALLOWED.
"""
import pathlib
import re
import sys

ALLOWED = {  # a file: the names that are no flags there
    "src/sync/ps/core/members.c": {"ps", "evaluator"},           # roles
    # What a supervisor adds to the command line of a task, and how a process
    # sees that it is one; both are below the flags, or before they are read.
    "src/job/supervise/local/host_local.c": {"role", "index", "control"},
    "src/app/library/threads.c": {"role", "index", "control"},
    "src/cli/app.c": {"control"},
    # Whole command lines, as a person would type them.
    "src/cli/demo/cmd_demo.c": {"workers", "ps", "batch", "steps", "run",
                                "checkpoint-every", "micro-batches"},
    # An experiment's own data may be replaced before its flags are read.
    "src/app/sweep/about.c": {"data"},
    "src/app/sweep/plan.c": {"data"},
}

ROLES = {"chief", "worker", "ps", "evaluator"}  # a list of these is no flags

ROW = re.compile(r'^[A-Z]+\(\w+, "([a-z0-9-]+)"', re.M)
TEXT_ARRAY = re.compile(
    r"\bchar \*(?:const )?\w+\[\w*\](?:\[\w*\])? = \{(.*?)\}", re.S)
PAIR_ARRAY = re.compile(r"\} \w+\[\] = \{(.*?)\n\s*\};", re.S)
# At the depth of the call itself: a flag's value may be looked up by its name.
COMPARED = re.compile(r'\bstrn?(?:case)?cmp\((?:[^;"()]|\([^()]*\))*?'
                      r'"(?:--)?([a-z0-9-]+)"')
QUOTED = re.compile(r'"(?:--)?([^"\\]*)"')


def flags(root):
    names = set()
    for table in (root / "src/app/options").glob("flags_*.def"):
        names |= set(ROW.findall(table.read_text()))
    return names


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def findings(root):
    names = flags(root)
    if len(names) < 50:
        yield f"src/app/options/flags_*.def: only {len(names)} rows found"
    for path in sorted((root / "src").rglob("*.[ch]")):
        text = path.read_text()
        where = path.relative_to(root).as_posix()
        forbidden = names - ALLOWED.get(where, set())
        for array in (TEXT_ARRAY, PAIR_ARRAY):
            for match in array.finditer(text):
                texts = QUOTED.findall(match[1])
                listed = [word for word in texts if word in forbidden]
                if len(listed) > 1 and 2 * len(listed) > len(texts) \
                        and not set(texts) <= ROLES:
                    yield (f"{where}:{line_of(text, match.start())}: lists "
                           f"flags ({', '.join(listed)}): give their rows an "
                           "attribute")
        for match in COMPARED.finditer(text):
            if match[1] in forbidden:
                yield (f"{where}:{line_of(text, match.start())}: compares with "
                       f"the flag \"{match[1]}\": give its row an attribute")


if __name__ == "__main__":
    found = list(findings(pathlib.Path(sys.argv[1] if len(sys.argv) > 1
                                       else ".")))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
