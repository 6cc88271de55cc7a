#!/usr/bin/env python3
"""Check that the name of a type or a constant means one, in the whole tree.

usage: check_types.py [REPO]       exit 1 and one line per finding, else silent

Each pl_ type of src and include is defined once, and so is each PL_ enumerator:
with two of one name a reader has to know which header a file includes, and no
file can include both.
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

ENUM = re.compile(r"\benum\b[^{};()]*\{(.*?)\}", re.S)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*#.*?(?<!\\)$", re.M | re.S)
# The entry of a list that a macro makes, "PL_X(...)", is not a name.
ENUMERATOR = re.compile(r"(?:^|,)\s*(PL_\w+)\s*(?==|,|$)")


def enumerators(text):
    for body in ENUM.findall(COMMENT.sub("", text)):
        yield from ENUMERATOR.findall(body)


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
            constants = list(enumerators(text))
            bodies.update(constants)
            for name in {*found, *named, *constants}:
                places[name].append(where)
    twice = [name for name in places if bodies[name] > 1 or names[name] > 1]
    for name in sorted(twice):
        print(f"{name} is defined in {', '.join(places[name])}")
    if len(places) < 1000:
        print(f"only {len(places)} types and enumerators found")
    return 1 if twice or len(places) < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
