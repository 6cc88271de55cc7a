#!/usr/bin/env python3
"""The cost of a page left open: in the browser and on the job's host.

Starts a job of two workers and a server, opens its page in Chromium, and lets
it refresh a given number of times without waiting in between: an hour has at
most 1,800 refreshes.  Prints Chromium's heap after garbage collection and its
number of DOM nodes at the beginning and at the end, and the server's processor
time per refresh, with its share of a processor at the server's refresh rate.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
from browser import Browser  # noqa: E402

JOB = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
       "--workers", "2", "--ps", "1", "--epochs", "1000000", "--eval-every",
       "200", "--threads", "1", "--quiet", "--run", "runs/job"]


def processor_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1]
    ticks = fields.split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


def held(browser):
    """Heap in MB and DOM nodes, after garbage collection."""
    browser.call("HeapProfiler.collectGarbage")
    metrics = {m["name"]: m["value"] for m in
               browser.call("Performance.getMetrics")["metrics"]}
    return metrics["JSHeapUsedSize"] / 1e6, metrics["Nodes"]


def watch(browser, server, address, refreshes):
    browser.open(address + "run/job")
    browser.evaluate("Figures.drawAll()")
    browser.call("Performance.enable")
    browser.call("HeapProfiler.enable")
    spent, spans = processor_s(server.pid), []
    for i in range(refreshes + 1):
        if i in (10, refreshes):
            heap, nodes = held(browser)
            print(f"after {i} refreshes: heap {heap:.1f} MB, {nodes:.0f} nodes",
                  flush=True)
        browser.evaluate("refresh()")
        browser.events.clear()
        spans.append(browser.evaluate("againIn()") / 1000)
    each = (processor_s(server.pid) - spent) / len(spans)
    share = each / (sum(spans) / len(spans))
    print(f"a refresh: {1000 * each:.0f} ms of the server's processor time, "
          f"every {sum(spans) / len(spans):.1f} s: {100 * share:.2f} % of a "
          "processor")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paceline", required=True)
    parser.add_argument("--refreshes", type=int, default=1800)
    args = parser.parse_args()
    program = pathlib.Path(args.paceline).resolve()
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen([program, *JOB], cwd=folder,
                               stdout=subprocess.DEVNULL)
        runs = pathlib.Path(folder) / "runs"
        while not any(runs.rglob("*tfevents*")):
            assert job.poll() is None
            time.sleep(0.2)
        server = subprocess.Popen([program, "page"], cwd=folder, text=True,
                                  stdout=subprocess.PIPE)
        browser = Browser()
        try:
            url = server.stdout.readline().strip()
            browser.open(url)
            watch(browser, server, url.split("?")[0], args.refreshes)
        finally:
            browser.close()
            for process in server, job:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
