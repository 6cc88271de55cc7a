#!/usr/bin/env python3
"""How soon losses are detected and recovered from, with default flags.

    PACELINE=build/paceline bench/recovery.py [--repeat N] [--no-alexnet]

Detection: tasks are started by hand, one is killed or stopped; the time until
another reports its loss.  Recovery: a supervised job whose server is killed;
the time until the chief resumes from the checkpoint, and the time of reading
the checkpoint alone.  Prints Markdown tables.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 300
SOFTMAX = ["softmax", "--data", "synthetic", "--examples", "2000", "--batch",
           "20", "--threads", "1"]
ALEXNET = ["alexnet", "--data", "synthetic", "--examples", "64", "--batch",
           "4", "--threads", "1"]
ENDLESS = ["--steps", "100000000", "--eval-every", "never"]
NOTICES = {  # lost task: whose log reports it, and how
    ("worker", 1): ("ps-0", r"worker 1 .*is lost"),
    ("worker", 0): ("ps-0", r"worker 0 .*is lost"),
    ("ps", 1): ("ps-0", r"ps 1 is lost"),
    ("ps", 0): ("worker-1", r"ps 0 .*is lost"),
}


def wait_for(look, what):
    """The first true result of look(), and its time."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found, time.monotonic()
        time.sleep(0.002)
    sys.exit(f"waited {DEADLINE_S} s for {what}")


def paceline(folder, *words, log):
    with (folder / f"{log}.log").open("wb") as file:
        return subprocess.Popen(
            [os.path.abspath(os.environ["PACELINE"]), "train",
             *map(str, words)],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=file)


def trains(run):
    """True when it has written a checkpoint of one of its own steps."""
    return any(int(path.parent.name[5:]) > 0
               for path in run.glob("checkpoints/step-*/manifest.json"))


def free_addresses(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = ["127.0.0.1:%d" % each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return found


def detect(victim, number):
    """Seconds from the signal until another task reports the loss."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        addresses = free_addresses(4)
        (folder / "c.json").write_text(json.dumps(
            {"cluster": {"ps": addresses[:2], "worker": addresses[2:]}}))
        job = {(role, index): paceline(
            folder, *SOFTMAX, *ENDLESS, "--checkpoint-every", "100",
            "--cluster", "c.json", "--role", role, "--index", index,
            *(["--run", "a"] if (role, index) == ("worker", 0) else []),
            log=f"{role}-{index}")
            for role in ("ps", "worker") for index in (0, 1)}
        try:
            wait_for(lambda: trains(folder / "a"), "the training")
            log, words = NOTICES[victim]
            began = time.monotonic()
            job[victim].send_signal(number)
            _, noticed = wait_for(lambda: re.search(
                words, (folder / f"{log}.log").read_text()), words)
            return noticed - began
        finally:
            for process in job.values():
                process.kill()
                process.wait()


def server_pid(supervisor):
    children = pathlib.Path(
        f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text()
    for pid in children.split():
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"--role" in words and words[words.index(b"--role") + 1] == b"ps":
            return int(pid)
    return 0


def reading_s(run):
    """Seconds to read the newest checkpoint, and its megabytes."""
    newest = max(run.glob("checkpoints/step-*/manifest.json")).parent
    began, size = time.monotonic(), 0
    for path in newest.iterdir():
        size += len(path.read_bytes())
    return time.monotonic() - began, size / 1e6


def recover(model, every):
    """Seconds from the death of the server until the chief resumes; seconds
    to read the checkpoint; its megabytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        job = paceline(folder, *model, *ENDLESS, "--workers", "2", "--ps", "1",
                       "--checkpoint-every", every, "--run", "a", log="job")
        try:
            wait_for(lambda: trains(folder / "a"), "the training")
            reading, size = reading_s(folder / "a")
            pid = server_pid(job)
            chief = folder / "a" / "log" / "worker-0.log"
            words = "continuing at step"
            before = chief.read_text().count(words)
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            _, again = wait_for(
                lambda: chief.read_text().count(words) > before,
                "the recovery")
            return again - began, reading, size
        finally:
            job.kill()
            job.wait()


def middle(values):
    return f"{statistics.median(values):.2f} s ({max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--no-alexnet", action="store_true")
    args = parser.parse_args()
    if "PACELINE" not in os.environ:
        parser.error("PACELINE must name the program")
    print("Noticed after, median (worst):\n")
    print("| lost | killed | frozen |\n|---|---|---|")
    for victim in NOTICES:
        found = [middle([detect(victim, number) for _ in range(args.repeat)])
                 for number in (signal.SIGKILL, signal.SIGSTOP)]
        print(f"| {victim[0]} {victim[1]} | {found[0]} | {found[1]} |",
              flush=True)
    print("\nServer killed, supervised, median (worst):\n")
    print("| model | checkpoint | reading it | training again after |")
    print("|---|---|---|---|")
    models = [("softmax", SOFTMAX, 100), ("alexnet", ALEXNET, 2)]
    for name, model, every in models[:1] if args.no_alexnet else models:
        rows = [recover(model, every) for _ in range(args.repeat)]
        print(f"| {name} | {rows[0][2]:.2f} MB | "
              f"{middle([row[1] for row in rows])} | "
              f"{middle([row[0] for row in rows])} |", flush=True)


if __name__ == "__main__":
    main()
