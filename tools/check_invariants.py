#!/usr/bin/env python3
"""check_invariants.py ROOT - tests name the invariants of a state machine.

The head of a machine's file numbers its invariants ("R2  A request takes
effect once ..." in request.c).  Each of them is named as "request R2" by a
test or by a message of the simulator, and a name in tests belongs to an
invariant that exists.  Files of one name count as one machine, and share no
number.  Prints one line a finding, exit 1 if any.
"""

import pathlib
import re
import sys

NUMBERED = re.compile(r"^ \*\s+([A-Z]\d)  \S", re.M)
# A number that a formatter moved into a line.
MENTIONED = re.compile(r"\. ([A-Z]\d)\b")


def machines(root):
    """The invariants of each file that numbers any, and what is wrong."""
    known, findings = {}, []
    for path in sorted((root / "src").rglob("*.c")):
        head = path.read_text().split("*/", 1)[0]
        numbers = NUMBERED.findall(head)
        for number in sorted(set(MENTIONED.findall(head)) - set(numbers)):
            findings.append(f"{path}: {number} is inside a line of its head")
        if not numbers:
            continue
        before = known.setdefault(path.stem, set())
        for number in sorted(before & set(numbers)):
            findings.append(f"{path}: there is another {path.stem} {number}")
        before.update(numbers)
    return known, findings


def main():
    root = pathlib.Path(sys.argv[1])
    known, findings = machines(root)
    named = re.compile(rf"\b({'|'.join(known)}) ((?:[A-Z]\d(?:, )?)+)")
    found = set()
    tests = root / "tests"
    for path in [*tests.glob("unit/**/*.c"), *tests.glob("sim/*.c"),
                 *tests.glob("cli/*.py")]:
        for stem, numbers in named.findall(path.read_text()):
            for number in re.findall(r"[A-Z]\d", numbers):
                found.add((stem, number))
                if number not in known[stem]:
                    findings.append(f"{path}: {stem} has no invariant {number}")
    findings += [f"{stem} {number}: named by no test"
                 for stem in known for number in sorted(known[stem])
                 if (stem, number) not in found]
    if len(known) < 28:
        findings.append(f"only {len(known)} machines found")
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
