"""docs/guide.md on one machine, with a stand-in for ssh."""

import json

from conftest import skip_when_sanitized
from guide import follow
from hosts import HOSTS, fake_ssh


def summary(cli, run):
    return json.loads((cli.folder / "runs" / run / "summary.json").read_text())


def test_guide_works_from_top_to_bottom(cli):
    skip_when_sanitized()  # the trainings take long
    done = follow(cli, HOSTS, fake_ssh(cli.folder))
    assert {"train", "page", "doctor", "launch", "report"} <= set(done)
    assert summary(cli, "three")["workers"] == 3
    assert summary(cli, "lenet")["steps"] == 150
    hashes = {summary(cli, run)["parameters_sha256"]
              for run in ("cluster", "ring", "alone")}
    assert len(hashes) == 1
    assert "</html>" in (cli.folder / "report.html").read_text()
