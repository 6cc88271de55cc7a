#!/usr/bin/env python3
"""check_invariants.py ROOT - tests name the invariants of a state machine.

The head of a machine's file numbers its invariants ("R2  A request takes
effect once ..." in request.c).  Each of them is named as "request R2" by a unit
test or by a message of the simulator, and a name in tests belongs to an
invariant that exists.  Prints one line a finding, exit 1 if any.
"""

import pathlib
import re
import sys

MACHINES = ["src/job/member", "src/job/supervise", "src/sync/ps/core",
            "src/sync/ps/modes", "src/sync/ps/worker/client.c"]
NUMBERED = re.compile(r"^ \*\s+([A-Z]\d)  \S", re.M)


def machine_files(root):
    for place in map(root.joinpath, MACHINES):
        yield from sorted(place.glob("*.c")) if place.is_dir() else [place]


def main():
    root = pathlib.Path(sys.argv[1])
    known = {}
    for path in machine_files(root):
        head = path.read_text().split("*/", 1)[0]
        known[path.stem] = set(NUMBERED.findall(head))
    stems = "|".join(name for name, numbers in known.items() if numbers)
    named = re.compile(rf"\b({stems}) ((?:[A-Z]\d(?:, )?)+)")
    found, bad = set(), 0
    tests = root / "tests"
    for path in [*tests.glob("unit/sync/ps/**/*.c"),
                 *tests.glob("unit/job/**/*.c"), *tests.glob("sim/*.c")]:
        for stem, numbers in named.findall(path.read_text()):
            for number in re.findall(r"[A-Z]\d", numbers):
                found.add((stem, number))
                if number not in known[stem]:
                    print(f"{path}: {stem} has no invariant {number}")
                    bad += 1
    for stem, numbers in known.items():
        for number in sorted(numbers):
            if (stem, number) not in found:
                print(f"{stem} {number}: named by no test")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
