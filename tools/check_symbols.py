#!/usr/bin/env python3
"""Check that the shared library offers what its public headers declare.

usage: check_symbols.py REPO [LIBRARY]
       check_symbols.py REPO --write      rewrite the map

src/paceline.map lists every exported symbol, so that a change of what the
library offers is seen in a change of that file.  It must hold exactly the
functions that include/ declares, and the library exactly those of the map.
Prints one line a breach, exit 1 if any.
"""
import pathlib
import re
import subprocess
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.M)
BLOCK = re.compile(r"\{[^{}]*\}")
CALL = re.compile(r"\b(pl_[a-z0-9_]+)\s*\(")
HEAD = "PACELINE_0 {\n    global:\n"
TAIL = "    local:\n        *;\n};\n"


def declared(root):
    """The functions that the public headers declare."""
    names = set()
    for header in sorted((root / "include").rglob("*.h")):
        text = DIRECTIVE.sub("", COMMENT.sub("", header.read_text()))
        text = text.replace('extern "C" {', "")
        while BLOCK.search(text):
            text = BLOCK.sub("", text)
        for statement in text.split(";"):
            found = CALL.search(statement)
            if found and not statement.split()[0] == "typedef":
                names.add(found[1])
    return names


def mapped(root):
    """The symbols that the map exports."""
    text = (root / "src" / "paceline.map").read_text()
    return set(re.findall(r"^\s+(pl_[a-z0-9_]+);$", text, re.M))


def exported(library):
    """The symbols that the library defines for others."""
    out = subprocess.run(["nm", "-D", "--defined-only", "--format=posix",
                          library], check=True, capture_output=True, text=True)
    names = {line.split()[0].split("@")[0] for line in out.stdout.splitlines()}
    return names - {"PACELINE_0"}


def differences(what, there, wanted):
    """A line for each symbol that is missing or too many."""
    for name in sorted(wanted - there):
        yield f"{what} lacks {name}"
    for name in sorted(there - wanted):
        yield f"{what} has {name}, which no public header declares"


def main(root, library):
    """All breaches; with --write, none after the map was written."""
    names = declared(root)
    if library == "--write":
        lines = "".join(f"        {name};\n" for name in sorted(names))
        (root / "src" / "paceline.map").write_text(HEAD + lines + TAIL)
        return []
    found = list(differences("src/paceline.map", mapped(root), names))
    if library:
        found += differences(library, exported(library), names)
    return found


if __name__ == "__main__":
    lines = main(pathlib.Path(sys.argv[1]), "".join(sys.argv[2:3]))
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))
