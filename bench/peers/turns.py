"""Shared by the scripts that alternate configurations."""
import json
import pathlib
import statistics
import subprocess

RUN_LIMIT_S = 900


def run_json(argv):
    """Run a command; the object in the last line of its output."""
    done = subprocess.run([str(a) for a in argv], capture_output=True,
                          text=True, timeout=RUN_LIMIT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{argv}: {done.stderr[-800:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def add_out(add):
    """The flag of a script that keeps its measurements."""
    add("--out", type=pathlib.Path,
        help="the rate of each configuration in each round, as JSON")


def write_rounds(path, rounds):
    """`rounds`: {configuration: rate} of each round."""
    if path:
        path.write_text(json.dumps(rounds) + "\n")


def spread(values, digits):
    """The median, with the least and the most."""
    if not values:
        return ""
    text = [f"{v:,.{digits}f}" for v in
            (statistics.median(values), min(values), max(values))]
    return f"{text[0]} ({text[1]}-{text[2]})"
