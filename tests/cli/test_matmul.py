"""Matrices multiplied in blocks, by processes of this machine."""

import contextlib
import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import DEADLINE_S, program, wait_for
from jobs import children, free_ports, gone, words_of


def product(cli, *flags, **more):
    return cli.ok("matmul", "--json", *flags, **more).json


def test_product_reports_actual_and_alternative_traffic(cli):
    best = product(cli, "--n", 512, "--blocks", 8, "--workers", 2)
    usual = product(cli, "--n", 512, "--blocks", 8, "--workers", 2,
                    "--placement", "(i+j)%W")
    whole = 4 * 512 * 512
    assert best["verified"] and usual["verified"]
    assert best["bytes_moved"] == whole
    assert usual["bytes_moved"] == 2 * whole
    assert best["other_bytes_moved"] == usual["bytes_moved"]
    assert usual["other_bytes_moved"] == best["bytes_moved"]
    assert [w["index"] for w in best["per_worker"]] == [0, 1]
    assert best["gflops"] > 0 and best["checked"] == 128


def test_result_is_the_same_by_tcp_and_for_any_workers(cli):
    traces = [product(cli, "--op", "trace", "--n", 300, "--blocks", 7,
                      "--workers", workers, "--transport", transport,
                      "--placement", "i%W")["trace"]
              for workers, transport in ((1, "auto"), (2, "auto"), (3, "tcp"))]
    assert len(set(traces)) == 1
    assert traces[0] != product(cli, "--op", "trace", "--n", 300, "--blocks",
                                7, "--seed", 2)["trace"]


def test_table_is_for_people(cli):
    out = cli.ok("matmul", "--n", 256, "--compare").out
    assert "placement best moved 262 kB; (i+j)%W would have moved 524 kB" \
        in out
    assert "128 sampled entries compared with the exact ones: all right" in out
    assert "one process on" in out


@pytest.mark.parametrize("flags, says", [
    (["--n", 4, "--blocks", 5], "--blocks 5"),
    (["--placement", "i+j"], "for block (0, 2)"),
    (["--placement", "k"], "--placement: \"k\": expected a number"),
    (["--n", 262144, "--compare"], "of memory"),
    (["--op", "trace", "--compare"], "--compare needs --op product"),
    (["--index", 1], "--index needs --cluster"),
    (["--cluster", "none.json"], "none.json"),
    (["--insecure"], "started by hand"),
    (["--workers", 61], "61"),
    (["x"], "only flags"),
])
def test_wrong_command_is_one_sentence(cli, flags, says):
    cli.refused(1 if "none.json" in flags else 2, "matmul", *flags, says=says)


def test_open_files_are_counted_before_anything_starts(cli):
    """Where the hard limit allows it, the soft one is raised."""
    def limited(*ulimit):
        return subprocess.run(
            ["sh", "-c", f'ulimit {" ".join(ulimit)} -n 32; exec "$@"', "sh",
             program(), "matmul", "--n", "64", "--workers", "8"],
            cwd=cli.folder, env=cli.env, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False)
    result = limited()
    assert result.returncode == 2, result
    assert "a task of a job of 8 workers needs up to 92 open files" in \
        result.stderr
    result = limited("-S")
    assert result.returncode == 0, result


def started_by_hand(cli, *more, order):
    """Two workers of a cluster file, started in this order."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    (cli.folder / "c.json").write_text(
        json.dumps({"cluster": {"worker": addresses}}))
    return [cli.start("matmul", "--json", "--n", 512, "--cluster", "c.json",
                      "--index", index, *more) for index in order]


def test_workers_of_a_cluster_file_come_in_any_order(cli):
    cli.ok("keys", "-o", "job.key")
    one, zero = started_by_hand(cli, "--keys", "job.key", order=(1, 0))
    results = [cli.end(process, "matmul") for process in (zero, one)]
    assert [r.code for r in results] == [0, 0], results
    assert results[0].json["verified"] and results[1].out == ""


def test_worker_with_other_keys_is_refused(cli):
    cli.ok("keys", "-o", "a.key")
    cli.ok("keys", "-o", "b.key")
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    (cli.folder / "c.json").write_text(
        json.dumps({"cluster": {"worker": addresses}}))
    both = [cli.start("matmul", "--n", 512, "--cluster", "c.json", "--index",
                      index, "--join-timeout", 3, "--keys", key)
            for index, key in enumerate(("a.key", "b.key"))]
    for process in both:
        result = cli.end(process, "matmul")
        assert result.code == 1 and "worker" in result.err, result


def test_missing_worker_is_named(cli):
    zero, = started_by_hand(cli, "--join-timeout", 1, order=(0,))
    result = cli.end(zero, "matmul")
    assert result.code == 1
    assert "worker 1 (127.0.0.1" in result.err, result


def test_beyond_loopback_keys_are_needed(cli):
    (cli.folder / "c.json").write_text(json.dumps(
        {"cluster": {"worker": ["127.0.0.1:4000", "192.0.2.1:4000"]}}))
    cli.refused(2, "matmul", "--cluster", "c.json", "--index", 0,
                says=["192.0.2.1:4000", "keys -o job.key"])


def disturbed(cli, disturb):
    """The messages of a job that is disturbed at work; the product is larger
    if the job ended before."""
    for n in (6000, 9000, 12000):
        process, pids = cli.start("matmul", "--n", n, "--workers", 2), []

        def there():
            pids[:] = [pid for pid in children(process.pid)
                       if "--index" in words_of(pid)]
            return len(pids) == 2
        if wait_for(there, "two workers", process):
            with contextlib.suppress(ProcessLookupError):
                disturb(process, pids)
        result = cli.end(process, "matmul")
        gone(pids)
        if result.code != 0:
            return result
    pytest.fail("no job is slow enough")


def test_killed_worker_is_named_and_no_process_is_left(cli):
    result = disturbed(cli, lambda _, pids: os.kill(pids[1], signal.SIGKILL))
    assert result.code == 1
    assert "worker 1" in result.err and "signal 9" in result.err, result


def test_ctrl_c_ends_all(cli):
    result = disturbed(cli, lambda job, _: job.send_signal(signal.SIGINT))
    assert result.code == 130, result


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="without mpirun")
def test_mpirun_starts_the_workers(cli):
    env = dict(cli.env, OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    out = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", program(),
                          "matmul", "--n", "512", "--json"], cwd=cli.folder,
                         env=env, capture_output=True, text=True,
                         timeout=DEADLINE_S)
    assert out.returncode == 0, out
    result = json.loads(out.stdout.splitlines()[-1])
    assert result["workers"] == 2 and result["verified"]
    assert "no keys" not in out.stderr


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="without mpirun")
def test_ranks_of_mpirun_have_a_secret_of_their_own(cli):
    """It is stored nowhere, and without it they do not begin."""
    for folder, code in ("here", 0), ("nowhere", 1):
        if code == 0:
            (cli.folder / folder).mkdir()
        env = dict(cli.env, OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        out = subprocess.run(
            ["mpirun", "--oversubscribe", "-n", "2", "env",
             f"TMPDIR={cli.folder / folder}", program(), "matmul", "--n",
             "512", "--json"], cwd=cli.folder, env=env, capture_output=True,
            text=True, timeout=DEADLINE_S)
        assert (out.returncode == 0) == (code == 0), out
    assert "the ranks' secret" in out.stderr, out
    assert not list((cli.folder / "here").glob("*.key*"))


def test_missing_keys_are_reported(cli):
    both = started_by_hand(cli, order=(0, 1))
    for process in both:
        result = cli.end(process, "matmul")
        assert result.code == 0, result
        assert "no keys: any user of this host can join" in result.err
    both = started_by_hand(cli, "--insecure", order=(0, 1))
    for process in both:
        assert cli.end(process, "matmul").code == 0
