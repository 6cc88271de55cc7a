#!/usr/bin/env python3
"""Check that a type's name means one type, in the whole tree.

usage: check_types.py [REPO]       exit 1 and one line per finding, else silent

Each pl_ type of src and include is defined once: with two of one name a reader
has to know which header a file includes, and no file can include both.
"""
import collections
import pathlib
import re
import sys

# "typedef struct pl_x {", "struct pl_x {" and "typedef enum {...} pl_x;".
BODY = re.compile(r"^(?:typedef )?(?:struct|enum|union) (pl_\w+) \{", re.M)
NAME = re.compile(r"^typedef (?:struct|enum|union) (?:pl_\w+ )?\{.*?^\} (pl_\w+);",
                  re.M | re.S)
OPAQUE = re.compile(r"^typedef (?:struct|enum|union) (pl_\w+) \1;", re.M)


def main():
    root = pathlib.Path(sys.argv[1] if sys.argv[1:] else ".")
    bodies, names = collections.Counter(), collections.Counter()
    places = collections.defaultdict(list)
    for home in ("src", "include"):
        for path in sorted((root / home).rglob("*.[ch]")):
            text = path.read_text()
            where = path.relative_to(root).as_posix()
            found = BODY.findall(text)
            bodies.update(found)
            named = NAME.findall(text) + OPAQUE.findall(text)
            names.update(named)
            for name in {*found, *named}:
                places[name].append(where)
    twice = [name for name in places if bodies[name] > 1 or names[name] > 1]
    for name in sorted(twice):
        print(f"{name} is defined in {', '.join(places[name])}")
    if len(places) < 300:
        print(f"only {len(places)} types found")
    return 1 if twice or len(places) < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
