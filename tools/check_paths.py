#!/usr/bin/env python3
"""Check that the files and folders which documents and comments name exist.

usage: check_paths.py [REPO]       exit 1 and one line per missing one

Looks at README.md, docs/ and the comments of C files for words such as
`src/train/loop/loop.c`, `train/sync.h` or `tests/sim/sim.h`, outside fenced
code; in documents also for folders such as `sync/ps/core/` or `core/`, for nouns
of a module such as `job/member`, and for the targets of Markdown links; in
comments also for names alone, such as `watch.c`.  A header opens with its own
name.
"""
import pathlib
import re
import sys

PATH = re.compile(r"(?<![\w./<:*-])((?:[\w-]+/)+[\w-]+\.(?:c|h|py|sh|md|cmake))(?![\w*])")
NAME = re.compile(r"(?<![\w./<*-])(\w[\w-]*\.[ch])\b(?![\w(*])")
OPENING = re.compile(r"/\* (\S+) - ")
FOLDER = re.compile(r"`((?:[\w-]+/)+)`")
NOUN = re.compile(r"`([\w-]+(?:/[\w-]+)+)`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
OUTSIDE = {"dnnl.h"}  # headers of libraries that comments name
SYSTEM = ("sys/", "linux/", "netinet/", "arpa/", "openssl/", "curl/", "oneapi/")


def named_paths(file):
    """The paths that a document, or the comments of a C file, name."""
    text = file.read_text(errors="replace")
    if file.suffix == ".md":
        plain = FENCE.sub("", text)
        return PATH.findall(LINK.sub("", plain)), LINK.findall(plain)
    return PATH.findall("\n".join(COMMENT.findall(text))), []


def unknown(root, file):
    """The folders and nouns that a document names and that are not there."""
    words = LINK.sub("", FENCE.sub("", file.read_text(errors="replace")))
    homes = [root, *(root / h for h in ("src", "tests", "docs", "python"))]
    below = [f"/{f.relative_to(root)}/" for h in ("src", "tests", "python")
             for f in (root / h).rglob("*") if f.is_dir()]
    for folder in set(FOLDER.findall(words)) - set(SYSTEM):
        there = any((home / folder).is_dir() for home in homes) or any(
            path.endswith(f"/{folder}") for path in below)
        if not there and not folder.startswith("build"):
            yield folder
    modules = {f.name for f in (root / "src").iterdir()} | {"tests", "src"}
    for noun in set(NOUN.findall(words)):
        if noun.split("/")[0] in modules and not any(
                (home / (noun + end)).exists()
                for home in homes for end in ("", ".h", ".c")):
            yield noun


def misnamed(file, names):
    """What the comments of a C file call by names that no file has."""
    text = file.read_text(errors="replace")
    if file.suffix == ".h":
        opening = OPENING.match(text)
        if opening is None or opening[1] != file.name:
            yield f"the first line is not /* {file.name} - what it is for"
    found = set(NAME.findall("\n".join(COMMENT.findall(text))))
    for name in sorted(found - names - OUTSIDE):
        yield f"there is no {name}"


def missing(root):
    names = {f.name for d in ("src", "include", "tests", "bench", "examples")
             for f in (root / d).rglob("*.[ch]")}
    homes = [root / h for h in ("", "src", "tests", "docs", "include", "bench")]
    files = [root / "README.md", *sorted((root / "docs").rglob("*.md")),
             *sorted(f for d in ("src", "include", "tests") for f in
                     (root / d).rglob("*.[ch]"))]
    for file in files:
        paths, links = named_paths(file)
        for path in sorted(set(paths)):
            if path.startswith(SYSTEM):
                continue
            if not any((home / path).exists() for home in [*homes, file.parent]):
                yield f"{file.relative_to(root)}: there is no {path}"
        if file.suffix != ".md":
            for finding in misnamed(file, names):
                yield f"{file.relative_to(root)}: {finding}"
        if file.suffix == ".md" and file.parent.name != "formats":
            for name in sorted(unknown(root, file)):
                yield f"{file.relative_to(root)}: there is no {name}"
        for link in sorted(set(links)):
            if not (file.parent / link).exists():
                yield f"{file.relative_to(root)}: link to {link}, which is not there"


if __name__ == "__main__":
    found = list(missing(pathlib.Path(sys.argv[1] if sys.argv[1:] else ".")))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
