"""Traces of all tasks of a run, and the table made of them."""

import csv
import io
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


def test_programs_get_one_document_of_a_job(cli):
    cli.train(*JOB, "--profile", "--run", "a", "--eval-every", "never")
    rows = json.loads(cli.ok("profile", "a", "--json").out)
    by_role = {role: [row for row in rows if row["role"] == role]
               for role in ("worker", "ps")}
    assert len(rows) == sum(map(len, by_role.values()))
    assert "softmax" in {row["name"] for row in by_role["worker"]}
    assert "push" in {row["name"] for row in by_role["ps"]}
    for part in by_role.values():
        assert abs(sum(row["share"] for row in part) - 1) < 1e-6
    table = list(csv.DictReader(io.StringIO(
        cli.ok("profile", "a", "--csv").out, newline="")))
    assert [(row["role"], row["name"], int(row["calls"])) for row in table] == \
        [(row["role"], row["name"], row["calls"]) for row in rows]
    shown = cli.ok("profile", "a").out
    assert "Time of the workers" in shown and "role" not in shown


def check_spans_nest(found):
    """Of one thread a span lies in another or beside it, to the ns."""
    lanes = {}
    for e in found:
        begin = round(e["ts"] * 1000)
        lanes.setdefault((e["pid"], e["tid"]), []).append(
            (begin, -round(e["dur"] * 1000), e["name"]))
    for lane in lanes.values():
        ends = []
        for begin, negative, name in sorted(lane):
            while ends and ends[-1][0] <= begin:
                ends.pop()
            end = begin - negative
            assert not ends or end <= ends[-1][0], (name, begin, end, ends)
            ends.append((end, name))


def test_spans_of_a_thread_do_not_overlap(cli):
    cli.train(*JOB, "--profile", "--run", "a", "--eval-every", "20",
              "--checkpoint-every", "25")
    cli.train(*SMALL, "--profile", "--run", "b", "--threads", "2",
              "--micro-batches", "2", "--eval-every", "10")
    total = 0
    for path in cli.folder.glob("[ab]/trace/*.json"):
        found = spans(path)
        check_spans_nest(found)
        total += len(found)
    assert total > 1000
    cli.ok("profile", "a", "--merge", "all.json")
    merged = json.loads((cli.folder / "all.json").read_text())
    check_spans_nest([e for e in merged["traceEvents"] if e["ph"] == "X"])


def test_files_that_are_not_traces_are_reported(cli):
    cli.train(*SMALL, "--run", "a")
    cli.refused(1, "profile", "a", says=["a has no traces", "--profile"])
    cli.refused(1, "profile", "nowhere", says=["nowhere"])
    cli.refused(2, "profile", says=["profile RUN"])
    cli.refused(2, "train", "softmax", *SMALL, "--profile=5",
                says=["--profile", "100:200"])
    (cli.folder / "a/trace").mkdir()
    (cli.folder / "a/trace/worker-0.json").write_text("{}")
    cli.refused(1, "profile", "a", says=["worker-0.json", "not a trace"])


SPARSE = ["sparse", "--features", "20000", "--examples", "2000", "--batch",
          "10", "--steps", "60", "--eval-every", "never", "--quiet"]


def test_a_sparse_model_is_profiled_by_operator(cli):
    cli.ok("train", *SPARSE, "--threads", "2", "--profile", "5:40",
           "--run", "a")
    found = spans(cli.folder / "a/trace/worker-0.json")
    check_spans_nest(found)
    steps = {}
    for e in found:
        steps.setdefault(e["name"], set()).add(e["args"]["step"])
    for name in "gather", "dot", "sigmoid", "error", "gradient", "apply":
        assert steps[name] == set(range(5, 41)), name
    assert steps["find"]
    rows = {row["name"]: row for row in
            json.loads(cli.ok("profile", "a", "--json").out)}
    assert rows["dot"]["shape"] == "[10]" and rows["dot"]["op"] == "X w + b"
    assert rows["gradient"]["shape"] == "[keys]"
    assert rows["gradient"]["gbytes"] > 0 and rows["gather"]["of_limit"] > 0
    for row in rows.values():
        assert (row["of_limit"] or 0) <= 1 or row["note"], row


def test_the_servers_of_a_sparse_model_are_profiled_too(cli):
    cli.ok("train", *SPARSE, "--threads", "1", "--workers", "2", "--ps", "2",
           "--profile", "--run", "a")
    rows = json.loads(cli.ok("profile", "a", "--json").out)
    names = {(row["role"], row["name"]) for row in rows}
    assert names >= {("worker", name) for name in (
        "find", "dot", "sigmoid", "gradient", "send", "wait")}, names
    assert names >= {("ps", name) for name in (
        "push", "keys", "combine", "update", "find")}, names
    assert ("ps", "aggregate, apply") not in names
