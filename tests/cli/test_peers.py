"""The table that `make bench-peers` prints, from what its parts recorded."""

import importlib
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def peers():
    sys.path.insert(0, str(ROOT / "bench/peers"))
    try:
        yield importlib.import_module("all")
    finally:
        sys.path.pop(0)


def speeds(name, work, batch, *steps_per_s):
    return [{"name": name, "work": work, "batch": batch, "round": number,
             "windows": [rate], "peak_rss_mb": 50.0}
            for number, rate in enumerate(steps_per_s, 1)]


def test_a_row_compares_the_fastest_of_both_sides_by_round(peers):
    results = (speeds("paceline:1", "softmax", 100, 20000, 20000) +
               speeds("paceline", "softmax", 100, 30000, 36000) +
               speeds("tf2_loop", "softmax", 100, 6000, 6000) +
               speeds("torch:1", "softmax", 100, 5000, 5000))
    assert peers.single_rows(results) == [
        ("softmax, batch 100", "3.30 M",
         "TensorFlow, loop in the graph: 600 k",
         "5.5 (5.0-6.0)")]


def test_bfloat16_is_compared_with_bfloat16(peers):
    results = (speeds("paceline", "alexnet", 128, 0.5) +
               speeds("paceline_bf16", "alexnet", 128, 0.75) +
               speeds("torch_cl", "alexnet", 128, 0.25) +
               speeds("torch_bf16", "alexnet", 128, 0.6))
    assert peers.single_rows(results) == [
        ("alexnet, batch 128", "64.0", "PyTorch, channels last: 32.0",
         "2.0 (2.0-2.0)"),
        ("alexnet, batch 128, --precision bf16", "96.0",
         "PyTorch, autocast to bfloat16: 76.8", "1.2 (1.2-1.2)")]


def test_servers_have_shared_memory_and_tcp_in_one_row(peers):
    rounds = [{"single": 40000, "sync shm": 19800, "sync tcp": 9500,
               "tensorflow sync": 700}]
    assert peers.rows_of("ps", rounds) == [
        ("softmax, 1 ps + 3 workers, sync: gradients/s", "19.8 k (TCP 9.5 k)",
         "TensorFlow's parameter server: 700",
         "28.3 (28.3-28.3); TCP 13.6 (13.6-13.6)")]


def test_without_peers_a_row_has_our_rate_alone(peers):
    assert peers.rows_of("ps_sparse_100", [{"async shm": 19400.0}]) == [
        ("sparse, 1 ps + 2 workers, batch 100, async: examples/s", "1.94 M",
         "", "")]


def test_every_model_and_script_of_the_table_is_run(peers):
    works = ",".join(part.flags for part in peers.PARTS.values())
    assert all(work in works for work in peers.run.WORKLOADS)
    assert {part.script for part in peers.PARTS.values()} == {
        "run.py", "ps.py", "allreduce.py", "sparse_files.py", "links.py"}
    assert "bench/peers/all.py" in (ROOT / "Makefile").read_text()
