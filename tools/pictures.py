#!/usr/bin/env python3
"""Make the pictures of docs/images that show TensorBoard, a report, the page.

usage: pictures.py PROGRAM tensorboard|report|steps|page...

PROGRAM is the paceline to train with.  Needs what `tools/setup.sh long`
installs: Chromium, and TensorBoard in build/venv-long.
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from urllib.parse import quote

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
from browser import Browser  # noqa: E402

PYTHON = ROOT / "build/venv-long/bin/python"
IMAGES = ROOT / "docs/images"
DEADLINE_S = 120
JOB = ["lenet", "--workers", "3", "--ps", "2", "--mode", "async", "--steps",
       "1500", "--eval-every", "100", "--eval-on", "workers", "--threads", "1"]
TAGS = "^(loss|accuracy|test_accuracy|examples_per_s|staleness|updates_per_s)$"


def wait_for(ready, what):
    deadline = time.monotonic() + DEADLINE_S
    while not ready():
        if time.monotonic() > deadline:
            sys.exit(f"pictures: {what} does not come")
        time.sleep(0.5)


@contextlib.contextmanager
def started_tensorboard(folder):
    """The address of one that has read the runs in the folder."""
    log = folder / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [PYTHON, "-m", "tensorboard.main", "--logdir", "runs",
             "--port", "0", "--host", "127.0.0.1", "--load_fast", "false"],
            stdout=out, stderr=out, cwd=folder,
            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"))
    found = []

    def ready():
        found[:] = re.findall(r"http://127\.0\.0\.1:\d+", log.read_text())
        if not found:
            return False
        with urllib.request.urlopen(f"{found[0]}/data/plugin/scalars/tags",
                                    timeout=60) as answer:
            tags = json.load(answer)
        return len(tags) >= 5 and all(tags.values())
    try:
        wait_for(ready, "TensorBoard")
        yield found[0]
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def settled(browser):
    """The page has asked for nothing for a while."""
    last = [-1, 0]

    def quiet():
        now = len(browser.seen("Network.requestWillBeSent",
                               "Network.loadingFinished"))
        last[1] = last[1] + 1 if now == last[0] else 0
        last[0] = now
        return last[1] >= 6
    return quiet


def show(browser, url, name, width, height):
    path = IMAGES / name
    browser.call("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=False)
    browser.open("about:blank")  # else another place in a page loads nothing
    browser.open(url)
    wait_for(settled(browser), url)
    browser.picture(path, width, height)
    print(f"{path}: {path.stat().st_size // 1024} KB")


def shrink(name):
    """To 64 colours."""
    subprocess.run(["pngquant", "--force", "--output", IMAGES / name, "64",
                    IMAGES / name], check=True)


def tensorboard(browser, program, folder):
    """Three workers and two servers, side by side; the model's graph."""
    subprocess.run([program, "train", *JOB, "--quiet", "--run", "runs/async"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with started_tensorboard(folder) as address:
        show(browser, f"{address}/#scalars&tagFilter={quote(TAGS)}",
             "tensorboard.png", 1440, 720)
        show(browser, f"{address}/#graphs&run=async%2Fevents%2Fworker-0",
             "tensorboard-graph.png", 860, 900)


def report(browser, program, folder):
    """The first screen of the report on batch sizes by mode."""
    subprocess.run([program, "sweep",
                    ROOT / "examples/sweeps/a7-batch-by-mode.sweep", "--quiet",
                    "--out", "a7"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([program, "report", "a7"], cwd=folder, check=True)
    show(browser, (folder / "report.html").as_uri(), "report.png", 1240, 1560)
    shrink("report.png")


def steps(browser, program, folder):
    """What each task did in three steps."""
    subprocess.run([program, "train", "lenet", "--workers", "3", "--ps", "2",
                    "--steps", "300", "--profile", "100:120", "--quiet",
                    "--run", "r"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([program, "report", "r"], cwd=folder, check=True)
    browser.call("Emulation.setDeviceMetricsOverride", width=1240, height=284,
                 deviceScaleFactor=1, mobile=False)
    browser.open((folder / "report.html").as_uri())
    browser.evaluate("""Figures.drawAll();
        document.getElementById("display").style.position = "static";
        scrollTo(0, scrollY - 12 + document.getElementById("timeline")
            .getBoundingClientRect().top)""")
    browser.picture(IMAGES / "report-steps.png", 1240, 284)
    shrink("report-steps.png")


def page(browser, program, folder):
    """The list: a sweep, runs that ended, and one that goes on; and that one."""
    def train(*args):
        return [program, "train", *args, "--quiet", "--run"]

    for command in (["sweep", "--grid", "batch=50,100 lr=0.1,0.01", "--out",
                     "runs/rates", "--quiet", "--", "softmax"],
                    train("softmax", "--epochs", "5")[1:] + ["runs/softmax"],
                    train("lenet", "--epochs", "2", "--mode", "async",
                          "--workers", "2", "--ps", "1")[1:] + ["runs/async"]):
        subprocess.run([program, *command], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
    job = subprocess.Popen(train("lenet", "--workers", "2", "--ps", "1",
                                 "--eval-every", "200", "--epochs", "30") +
                           ["runs/lenet"], cwd=folder,
                           stdout=subprocess.DEVNULL)
    server = subprocess.Popen([program, "page"], cwd=folder,
                              stdout=subprocess.PIPE, text=True)
    try:
        browser.open(server.stdout.readline().strip())
        address = browser.evaluate("location.href")
        wait_for(lambda: browser.evaluate(
            "document.querySelector('.running polyline') !== null"),
            "the curve of the job")
        browser.open(address + "run/lenet")
        wait_for(lambda: browser.evaluate(
            "Figures.model.series.some(s => s.metric === 'test_accuracy' && "
            "s.y.length > 9)"), "the curves")
        browser.picture(IMAGES / "page-run.png", 1240, 760)
        browser.open(address)
        browser.picture(IMAGES / "page.png", 1240, 400)
    finally:
        for process in (job, server):
            process.terminate()
            process.wait(DEADLINE_S)
    for name in "page.png", "page-run.png":
        shrink(name)


def main():
    kinds = {"tensorboard": tensorboard, "report": report,
             "steps": steps, "page": page}
    if len(sys.argv) < 3 or not set(sys.argv[2:]) <= kinds.keys():
        sys.exit(__doc__)
    program = pathlib.Path(sys.argv[1]).resolve()
    browser = Browser()
    try:
        for kind in sys.argv[2:]:
            with tempfile.TemporaryDirectory() as folder:
                kinds[kind](browser, program, pathlib.Path(folder))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
