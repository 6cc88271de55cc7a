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
    common, table, tasks, findings = cli.ok(
        "compare", "all").out.split("\n\n")
    assert common.startswith("all runs: softmax ") and "--steps 50" in common
    assert "batch" not in common
    assert tasks.startswith("run ") and "worker memory [MB]" in tasks
    assert "Test accuracy" in findings
    # A run of 50 steps may be too short to have one.
    limited = any(json.loads(path.read_text())["bottleneck"]
                  for path in runs.glob("*/summary.json"))
    assert ("bottleneck" in tasks) == limited
    assert ("What limits: " in findings) == limited
    text = table.splitlines()
    assert len(text) == 5
    assert text[0].split()[:3] == ["run", "batch", "seed"]
    assert "test accuracy [%]" in text[0]
    assert text[1].split()[:3] == ["b10-1", "10", "1"]
    assert text[4].split()[:3] == ["b100-2", "100", "2"]
    rows = json.loads(cli.ok("compare", "all", "--json").out)
    assert [r["flag.batch"] for r in rows] == [10, 10, 100, 100]
    summary = json.loads((runs / "b10-1" / "summary.json").read_text())
    results = rows[0]
    for key in "test_accuracy", "peak_rss_mb":
        assert results[key] == summary[key]
    assert results["steps"] == 50 and results["stopped_by"] == "steps"
    table = list(csv.DictReader(io.StringIO(
        cli.ok("compare", "all/b10-1", "all/b100-1", "--csv").out)))
    assert [r["run"] for r in table] == ["b10-1", "b100-1"]


def test_flags_of_the_model_are_shown_where_they_were_given(cli):
    for name, lr in ("a", 0.1), ("b", 0.2):
        cli.ok("train", "lenet", "--data", "synthetic", "--examples", 100,
               "--steps", 2, "--pool", "avg", "--pad", 0, "--lr", lr,
               "--quiet", "--run", f"all/{name}")
    common = cli.ok("compare", "all").out.split("\n\n")[0]
    assert "--pool avg" in common and "--pad 0" in common
    assert "--activation" not in common  # left at its default


def test_repetitions_have_a_mean_and_a_spread(cli, runs):
    rows = json.loads(cli.ok("compare", "all", "--mean", "--json").out)
    assert [(r["flag.batch"], r["repetitions"]) for r in rows] == [
        (10, 2), (100, 2)]
    losses = [json.loads((runs / f"b10-{seed}" / "summary.json").read_text())
              ["test_loss"] for seed in (1, 2)]
    results = rows[0]
    assert results["test_loss"] == pytest.approx(sum(losses) / 2)
    assert results["test_loss_spread"] == pytest.approx(
        abs(losses[0] - losses[1]) / 2 ** 0.5)


def no_key_twice(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


@pytest.mark.parametrize("mean", [[], ["--mean"]])
def test_flags_and_results_of_one_name_are_kept_apart(cli, mean):
    """--epochs and --steps are what was asked for, epochs and steps what was
    done; programs load both without cleaning."""
    small = ["--data", "synthetic", "--examples", 200, "--batch", 100,
             "--quiet"]
    cli.ok("train", "softmax", *small, "--epochs", 3, "--run", "all/a")
    cli.ok("train", "softmax", *small, "--epochs", 9, "--stop-loss", 100,
           "--lr", "1e-3", "--run", "all/b")
    cli.ok("train", "softmax", *small, "--steps", 4, "--run", "all/c")
    document = json.loads(cli.ok("compare", "all", "--json", *mean).out,
                          object_pairs_hook=no_key_twice)
    runs = {r["run"]: r for r in document}
    assert [runs[name]["flag.epochs"] for name in "ab"] == [3, 9]
    assert runs["c"]["flag.steps"] == 4
    assert runs["b"]["flag.lr"] == 0.001
    assert runs["b"]["epochs"] < 9
    done = {name: json.loads(
        (cli.folder / "all" / name / "summary.json").read_text())
        for name in runs}
    for name, run in runs.items():
        for key in "steps", "epochs", "seconds", "test_accuracy":
            assert run[key] == done[name][key]

    head, *rows = csv.reader(io.StringIO(
        cli.ok("compare", "all", "--csv", *mean).out))
    assert len(set(head)) == len(head)
    assert {"flag.epochs", "flag.steps", "epochs", "steps"} <= set(head)
    assert all(len(row) == len(head) for row in rows)
    for row in (dict(zip(head, row)) for row in rows):
        run = runs[row["run"]]
        assert row.keys() == run.keys()
        for key, value in run.items():
            text = row[key]
            assert text == "" if value is None else (
                text == str(value) or
                float(text) == pytest.approx(value, rel=1e-14))

    plain = cli.ok("compare", "all").out.split("\n\n")[1].split()
    assert "--epochs" in plain and "epochs" in plain


def test_one_run_has_no_flags_that_set_it_apart(cli, runs):
    document = json.loads(cli.ok("compare", "all/b10-1", "--json").out)
    assert not any(key.startswith("flag.") for key in document[0])


def test_a_corrupt_run_is_skipped_and_reported(cli, runs):
    (runs / "b10-1" / "run.json").write_text("{")
    result = cli.ok("compare", "all")
    assert len(result.out.split("\n\n")[1].splitlines()) == 4
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
