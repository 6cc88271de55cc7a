"""Traces of all tasks of a run, and the table made of them."""

import json

from conftest import SMALL

JOB = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
       "--threads", "1", "--workers", "2", "--ps", "2", "--steps", "60"]


def spans(path):
    trace = json.loads(path.read_text())
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


def test_only_the_steps_asked_for_are_traced(cli):
    cli.train(*SMALL, "--profile", "10:12", "--run", "a")
    found = spans(cli.folder / "a/trace/worker-0.json")
    assert {e["args"]["step"] for e in found} == {10, 11, 12}
    names = {e["name"] for e in found}
    assert names >= {"softmax", "read"}
    assert all(e["dur"] >= 0 for e in found)


def test_every_task_of_a_job_has_a_trace(cli):
    cli.train(*JOB, "--profile", "--run", "a", "--eval-every", "never")
    folder = cli.folder / "a/trace"
    files = {p.name for p in folder.iterdir()}
    assert files == {"worker-0.json", "worker-1.json", "ps-0.json",
                     "ps-1.json"}
    for i in 0, 1:
        names = {e["name"] for e in spans(folder / f"worker-{i}.json")}
        assert names >= {"softmax", "read", "send", "wait"}, names
        names = {e["name"] for e in spans(folder / f"ps-{i}.json")}
        assert names >= {"push", "aggregate, apply", "send", "wait"}, names


def test_merged_traces_are_on_one_clock(cli):
    """A server applies a step only when the workers have sent it."""
    cli.train(*JOB, "--profile", "--run", "a", "--eval-every", "never")
    cli.ok("profile", "a", "--merge", "all.json")
    merged = json.loads((cli.folder / "all.json").read_text())
    names = {e["pid"]: e["args"]["name"] for e in merged["traceEvents"]
             if e["name"] == "process_name"}
    assert sorted(names.values()) == ["ps 0", "ps 1", "worker 0", "worker 1"]
    begin, applied = {}, {}
    for e in merged["traceEvents"]:
        if e["ph"] != "X":
            continue
        step, who = e["args"]["step"], names[e["pid"]]
        if who.startswith("worker") and e["name"] == "softmax":
            begin.setdefault(step, []).append(e["ts"])
        if who.startswith("ps") and e["name"] == "aggregate, apply":
            applied.setdefault(step, []).append(e["ts"] + e["dur"])
    common = begin.keys() & applied.keys()
    assert len(common) > 20
    for step in common:
        assert max(begin[step]) < max(applied[step]), step


def test_the_table_names_operators_and_speed(cli):
    cli.train(*SMALL, "--profile", "--run", "a")
    rows = json.loads(cli.ok("profile", "a", "--json").out)
    by_name = {row["name"]: row for row in rows}
    inner = by_name["softmax"]
    assert inner["op"] == "inner" and inner["shape"] == "[100, 10]"
    assert inner["calls"] >= 50 and inner["gflops"] > 0
    assert inner["of_limit"] > 0
    assert abs(sum(row["share"] for row in rows) - 1) < 1e-6
    shown = cli.ok("profile", "a").out
    assert "softmax" in shown and "GFLOP/s" in shown
    assert cli.ok("profile", "a", "--csv").out.startswith("name,op,shape")


def test_what_is_no_trace_is_said(cli):
    cli.train(*SMALL, "--run", "a")
    cli.refused(1, "profile", "a", says=["a has no traces", "--profile"])
    cli.refused(1, "profile", "nowhere", says=["nowhere"])
    cli.refused(2, "profile", says=["profile RUN"])
    cli.refused(2, "train", "softmax", *SMALL, "--profile=5",
                says=["--profile", "100:200"])
    (cli.folder / "a/trace").mkdir()
    (cli.folder / "a/trace/worker-0.json").write_text("{}")
    cli.refused(1, "profile", "a", says=["worker-0.json", "not a trace"])
