#!/usr/bin/env python3
"""Print what the steps of .ci/run did, as one table.

usage: test_table.py FOLDER

FOLDER has a file `times` with a line "STEP SECONDS" for each step, STEP.log
with what the step printed, and STEP.tests with what its tests printed (the
LastTest.log of CTest).  A row has the step, its time, the tests that ran and
those skipped; below the table stands each reason with its number.  Tests that
pytest or cmocka skipped inside a CTest test are counted as skipped, too.
"""
import collections
import pathlib
import re
import sys

TEST = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) .*?(Passed|Failed|Skipped|"
                  r"Not Run|Timeout)", re.M)
BY_PYTEST = re.compile(r"^SKIPPED \[(\d+)\] [^:\n]+(?::\d+)?: (.+)$", re.M)
BY_CMOCKA = re.compile(r"^\[  SKIPPED \] (\w+)$", re.M)


def row(folder, step, seconds):
    """(step, seconds, tests that ran, {reason: how many were skipped})"""
    log = (folder / f"{step}.log").read_text(errors="replace")
    inside = folder / f"{step}.tests"
    said = inside.read_text(errors="replace") if inside.exists() else ""
    tests = TEST.findall(log)
    skipped = collections.Counter()
    for name, how in tests:
        if how in ("Skipped", "Not Run"):
            skipped[f"{name}: {how.lower()} by CTest"] += 1
    for count, reason in BY_PYTEST.findall(said):
        skipped[reason.strip()] += int(count)
    # cmocka names a skipped test twice: where it is, and in its summary.
    for name in sorted(set(BY_CMOCKA.findall(said))):
        skipped[f"{name}: its requirement is not met on this machine"] += 1
    ran = sum(how not in ("Skipped", "Not Run") for _, how in tests)
    return step, int(seconds), ran, skipped


def table(folder):
    rows = [row(folder, *line.split())
            for line in (folder / "times").read_text().splitlines()]
    yield f"{'step':<12} {'time [s]':>8} {'tests':>6} {'skipped':>8}"
    for step, seconds, ran, skipped in rows:
        yield f"{step:<12} {seconds:>8} {ran:>6} {sum(skipped.values()):>8}"
    yield (f"{'all':<12} {sum(r[1] for r in rows):>8} "
           f"{sum(r[2] for r in rows):>6} "
           f"{sum(sum(r[3].values()) for r in rows):>8}")
    for step, _, _, skipped in rows:
        for reason, count in sorted(skipped.items()):
            yield f"  {step}: skipped {count}: {reason}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: test_table.py FOLDER")
    print("\n".join(table(pathlib.Path(sys.argv[1]))))
