"""`compare`: runs side by side."""

import csv
import io
import json

import pytest

from conftest import SMALL


@pytest.fixture
def runs(cli):
    for batch in 10, 100:
        for seed in 1, 2:
            cli.train(*SMALL, "--batch", batch, "--seed", seed, "--run",
                      f"all/b{batch}-{seed}")
    return cli.folder / "all"


def test_runs_stand_side_by_side(cli, runs):
    text = cli.ok("compare", "all").out.splitlines()
    assert len(text) == 5
    assert text[0].split()[:3] == ["run", "batch", "seed"]
    assert "test accuracy [%]" in text[0]
    assert text[1].split()[:3] == ["b10-1", "10", "1"]
    assert text[4].split()[:3] == ["b100-2", "100", "2"]
    rows = json.loads(cli.ok("compare", "all", "--json").out)
    assert [r["batch"] for r in rows] == ["10", "10", "100", "100"]
    summary = json.loads((runs / "b10-1" / "summary.json").read_text())
    for key in "test_accuracy", "peak_rss_mb":
        assert rows[0][key] == summary[key]
    assert rows[0]["steps"] == 50 and rows[0]["stopped_by"] == "steps"
    table = list(csv.DictReader(io.StringIO(
        cli.ok("compare", "all/b10-1", "all/b100-1", "--csv").out)))
    assert [r["run"] for r in table] == ["b10-1", "b100-1"]


def test_repetitions_have_a_mean_and_a_spread(cli, runs):
    rows = json.loads(cli.ok("compare", "all", "--mean", "--json").out)
    assert [(r["batch"], r["runs"]) for r in rows] == [("10", 2), ("100", 2)]
    losses = [json.loads((runs / f"b10-{seed}" / "summary.json").read_text())
              ["test_loss"] for seed in (1, 2)]
    assert rows[0]["test_loss"] == pytest.approx(sum(losses) / 2)
    assert rows[0]["test_loss_spread"] == pytest.approx(
        abs(losses[0] - losses[1]) / 2 ** 0.5)


def test_a_corrupt_run_is_left_out_and_said(cli, runs):
    (runs / "b10-1" / "run.json").write_text("{")
    result = cli.ok("compare", "all")
    assert len(result.out.splitlines()) == 4
    assert "b10-1" in result.err and "left out" in result.err


@pytest.mark.parametrize("words, code, says", [
    ([], 2, "compare RUN..."),
    (["x", "--json", "--csv"], 2, "--csv"),
    (["--nope"], 2, "--nope"),
    (["no/such"], 1, "no/such"),
    (["."], 1, "no run.json"),
])
def test_wrong_usage_is_one_sentence(cli, words, code, says):
    cli.refused(code, "compare", *words, says=says)
