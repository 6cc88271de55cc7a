"""The real TensorBoard reads what a training records, and shows it.

It is that of `tools/setup.sh long`; PL_TENSORBOARD may name another Python
program that has it.
"""

import json
import os
import re
import subprocess
import urllib.request

import pytest

from conftest import ROOT, wait_for

PYTHON = os.environ.get("PL_TENSORBOARD", ROOT / "build/venv-long/bin/python")
ENV = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="",
           PYTHONWARNINGS="default")

LOAD = """
import logging, sys, warnings
warnings.simplefilter("error")
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.util import tb_logging
said = []
tb_logging.get_logger().addHandler(logging.NullHandler())
tb_logging.get_logger().warning = lambda *a, **k: said.append(a)
count = 0
for path in sys.argv[1:]:
    last = 0
    for event in event_file_loader.EventFileLoader(path).Load():
        assert event.wall_time >= last - 1, "time runs backwards"
        last = event.wall_time
        count += 1
assert not said, said
print(count)
"""


@pytest.fixture
def runs(cli):
    cli.train("--epochs", "2", "--histograms-every", "1ep", "--run", "a")
    cli.ok("train", "lenet", "--quiet", "--workers", "2", "--ps", "2",
           "--mode", "ssp", "--staleness", "5", "--steps", "100",
           "--histograms-every", "20", "--eval-every", "50", "--evaluator",
           "--run", "b")  # ssp: each worker makes its part of the steps
    return cli.folder


def test_its_reader_reports_no_problem(runs):
    files = sorted(map(str, runs.glob("*/events/*/events.out.tfevents.*")))
    assert len(files) == 6
    done = subprocess.run([PYTHON, "-c", LOAD, *files], env=ENV, timeout=300,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def get(address, path, body=None):
    headers = {"Content-Type": "application/json"} if body else {}
    request = urllib.request.Request(f"{address}/data/{path}", data=body,
                                     headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


@pytest.fixture
def server(runs, tmp_path):
    """TensorBoard on the runs, at any free port; its address."""
    log = tmp_path / "tensorboard.log"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [PYTHON, "-m", "tensorboard.main", "--logdir", runs, "--port",
             "0", "--host", "127.0.0.1", "--load_fast", "false"],
            stdout=out, stderr=out, env=ENV)
    found = []

    def ready():
        found[:] = re.findall(r"http://127\.0\.0\.1:\d+", log.read_text())
        if not found:
            return False
        tags = json.loads(get(found[0], "plugin/scalars/tags"))
        return len(tags) == 6 and all(tags.values())
    try:
        assert wait_for(ready, "TensorBoard", process), log.read_text()
        yield found[0]
    finally:
        process.terminate()
        process.wait(60)


def test_its_pages_show_runs_tags_graph_and_hparams(server):
    assert set(json.loads(get(server, "runs"))) == {
        "a/events/worker-0", "b/events/worker-0", "b/events/worker-1",
        "b/events/evaluator-0", "b/events/ps-0", "b/events/ps-1"}
    tags = json.loads(get(server, "plugin/scalars/tags"))
    assert tags["b/events/worker-1"].keys() >= {
        "loss", "accuracy", "learning_rate", "staleness", "waiting_share",
        "examples_per_s", "gradient_norm"}
    assert tags["b/events/ps-1"].keys() >= {
        "updates_per_s", "gradients_accepted", "gradients_dropped",
        "staleness", "waiting_share", "sent_bytes_per_s"}
    histograms = json.loads(get(server, "plugin/histograms/tags"))
    assert "gradients/conv1/weights" in histograms["b/events/worker-1"]
    curve = json.loads(get(
        server, "plugin/scalars/scalars?run=a/events/worker-0&tag=test_loss"))
    assert [point[1] for point in curve] == [600, 1200]
    graph = get(server, "plugin/graphs/graph?run=b/events/worker-0")
    assert '"/job:ps/task:1"' in graph and 'op: "conv2d"' in graph
    experiment = json.loads(get(server, "plugin/hparams/experiment",
                                b'{"experimentName": ""}'))
    names = {info["name"] for info in experiment["hparamInfos"]}
    assert names >= {"batch", "lr", "model", "mode"}
    metrics = {info["name"]["tag"] for info in experiment["metricInfos"]}
    assert "test_accuracy" in metrics
