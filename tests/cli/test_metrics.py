"""What monitoring systems see: OpenMetrics of jobs and of `paceline page`."""

import http.client
import json
import pathlib
import re
import signal
import urllib.parse

import pytest
from prometheus_client.openmetrics.parser import \
    text_string_to_metric_families

from conftest import ROOT, wait_for
from served import DEADLINE_S, Page

EXAMPLES = ROOT / "examples/metrics"
KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"
ENDLESS = ["train", "softmax", "--data", "synthetic", "--examples", "500",
           "--steps", "1000000000", "--threads", "1", "--eval-every", "50",
           "--record-every", "10"]


class Job:
    """A job that runs until it is asked to end."""

    def __init__(self, cli, *args):
        self.said = open(cli.folder / "said", "w+b")
        self.process = cli.start(*ENDLESS, *args, stderr=self.said)
        wait_for(self.find, "the place of the metrics", self.process)
        assert self.place, self.text()

    def text(self):
        return pathlib.Path(self.said.name).read_text()

    def find(self):
        found = re.search("metrics: (http://[^ ,\n]*)(.*)", self.text())
        self.place = found and urllib.parse.urlsplit(found[1])
        return found

    def get(self, path="/metrics", **headers):
        peer = http.client.HTTPConnection(self.place.hostname, self.place.port,
                                          timeout=DEADLINE_S)
        peer.request("GET", path, headers=headers)
        answer = peer.getresponse()
        body = answer.read().decode()
        peer.close()
        return answer, body

    def metrics(self):
        answer, body = self.get()
        assert answer.status == 200 and answer.headers["Content-Type"] == KIND
        return parse(body)

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=DEADLINE_S)
        self.said.close()


@pytest.fixture
def start(cli):
    jobs = []

    def go(*args):
        jobs.append(Job(cli, *args))
        return jobs[-1]
    yield go
    for job in jobs:
        job.close()


def parse(body):
    """{name of a sample: [(labels, value)]}; the parser refuses what is no
    OpenMetrics."""
    found = {}
    for family in text_string_to_metric_families(body):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(
                (sample.labels, sample.value))
    return found


def of_tasks(found, name):
    return {labels["task"]: value for labels, value in found.get(name, [])}


def test_a_job_is_seen_with_its_tasks(start):
    job = start("--workers", "2", "--ps", "1", "--run", 'runs/a "b"\\',
                "--metrics", "127.0.0.1:0")
    everyone = {"worker-0", "worker-1", "ps-0"}

    def seen():
        found = job.metrics()
        return found if (
            set(of_tasks(found, "paceline_task_sent_bytes_total")) == everyone
            and set(of_tasks(found, "paceline_task_memory_bytes")) == everyone
            and set(of_tasks(found, "paceline_task_examples_per_second"))
            == everyone - {"ps-0"}
            and "paceline_test" in found) else None
    wait_for(seen, "the numbers of all tasks", job.process)
    first, second = job.metrics(), job.metrics()
    (labels, value), = first["paceline_run_info"]
    assert value == 1 and labels == {
        "run": 'a "b"\\', "model": "softmax", "strategy": "ps",
        "stopped_by": ""}
    run = {"run": 'a "b"\\'}
    assert first["paceline_running"] == [(run, 1)]
    assert first["paceline_end_step"] == [(run, 1e9)]
    assert first["paceline_loss"][0][1] > 0
    assert 0 < first["paceline_step"][0][1] <= second["paceline_step"][0][1]
    assert first["paceline_examples_per_second"][0][1] > 0
    tests = {labels["metric"]: value
             for labels, value in first["paceline_test"]}
    assert set(tests) == {"loss", "accuracy", "top5_accuracy"}
    assert 0 <= tests["accuracy"] <= tests["top5_accuracy"] <= 1
    assert of_tasks(first, "paceline_task_up") == dict.fromkeys(everyone, 1)
    assert of_tasks(first, "paceline_task_restarts_total") == \
        dict.fromkeys(everyone, 0)
    for task, memory in of_tasks(first, "paceline_task_memory_bytes").items():
        assert memory > 1e6, task
    for task, share in of_tasks(first, "paceline_task_waiting_ratio").items():
        assert 0 <= share <= 1, task
    for task, age in of_tasks(
            first, "paceline_task_last_step_age_seconds").items():
        assert -1 <= age < DEADLINE_S, task
    # There is nothing else, and no page of another site gets it.
    assert job.get("/")[0].status == 404
    assert job.get(Host="evil.example")[0].status == 421


def test_a_token_is_required(cli, start):
    token = "0123456789abcdef" * 2
    (cli.folder / "token").write_text(token + "\n")
    (cli.folder / "token").chmod(0o600)
    job = start("--run", "runs/a", "--metrics", "0.0.0.0:0", "--metrics-token",
                "token")
    for headers in ({}, {"Authorization": "Bearer " + token[:-1]},
                    {"Authorization": "Bearer " + token + "0"},
                    {"Authorization": "Basic " + token}):
        answer, body = job.get(**headers)
        assert answer.status == 401 and "paceline_" not in body, headers
    answer, body = job.get(Authorization="Bearer " + token, Host="db.example")
    assert answer.status == 200 and answer.headers["Content-Type"] == KIND
    parse(body)


def test_the_page_has_the_metrics_of_all_runs(cli):
    train = ["train", "softmax", "--data", "synthetic", "--examples", "500",
             "--epochs", "1", "--quiet"]
    cli.ok(*train, "--run", "runs/a")
    cli.ok(*train, "--run", "runs/b")
    (cli.folder / "runs/b/summary.json").unlink()
    page = Page(cli)
    try:
        answer, body = page.get("/metrics")
        assert answer.status == 200 and answer.headers["Content-Type"] == KIND
        found = parse(body)
        assert {labels["run"]: labels["stopped_by"]
                for labels, _ in found["paceline_run_info"]} == {
                    "a": "epochs", "b": ""}
        assert dict((labels["run"], value) for labels, value
                    in found["paceline_running"]) == {"a": 0, "b": 1}
        assert dict((labels["run"], value) for labels, value
                    in found["paceline_step"]) == {"a": 5, "b": 5}
        # The page itself still requires the cookie.
        assert page.get("/")[0].status == 403
        assert page.get("/metrics", method="POST")[0].status == 403
    finally:
        page.close()


def test_wrong_usage(cli):
    train = ["train", "softmax", "--data", "synthetic", "--steps", "1"]
    (cli.folder / "open").write_text("0123456789abcdef\n")
    (cli.folder / "open").chmod(0o644)
    (cli.folder / "short").write_text("abc\n")
    (cli.folder / "short").chmod(0o600)
    for args, says in (
            (["--metrics-token", "open"], "needs --metrics ADDRESS"),
            (["--metrics", "9464"], "is not HOST:PORT"),
            (["--metrics", "0.0.0.0:0"], "add --metrics-token FILE"),
            (["--metrics", "127.0.0.1:0", "--metrics-token", "open"],
             "chmod 600 open"),
            (["--metrics", "127.0.0.1:0", "--metrics-token", "short"],
             "at least 16 printable ASCII characters")):
        result = cli.run(*train, *args)
        assert result.code == 2 and says in result.err, result


def names_in(text):
    return set(re.findall(r"\bpaceline_[a-z_]+", text))


def test_the_examples_use_existing_metrics():
    """Each metric of the dashboard and of the alerts is in the table of
    docs/observe.md, and the other way round it is served."""
    source = (ROOT / "src/observe/live/live_metrics.c").read_text()
    served = set()
    for name, kind in re.findall(r'\{ "(paceline_[a-z_]+)", "(\w+)"', source):
        ending = {"counter": "_total", "info": "_info"}.get(kind, "")
        served.add(name + ending)
    documented = set(re.findall(r"^\| `(paceline_[a-z_]+)`",
                                (ROOT / "docs/observe.md").read_text(), re.M))
    assert served == documented
    dashboard = json.loads((EXAMPLES / "grafana.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"]
             for target in panel["targets"]]
    alerts = (EXAMPLES / "alerts.yml").read_text()
    asked += re.findall(r"^\s+expr: (.*)$", alerts, re.M)
    assert len(asked) > 10
    for expression in asked:
        names = names_in(expression)
        assert names and names <= served, expression
    # A label that no metric has would silently select nothing.
    for labels in re.findall(r"\{([^{}]*)\}", " ".join(asked)):
        assert set(re.findall(r"(\w+)\s*=~?", labels)) <= {
            "run", "task", "metric"}, labels
