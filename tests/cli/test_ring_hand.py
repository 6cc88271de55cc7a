"""Workers of a ring started one by one, in any order."""

import json
import re
import signal
import subprocess

import pytest

import jobs
from conftest import DEADLINE_S, SMALL, Cli, program
from jobs import (free_ports, knocked, same_bits, wait_for_checkpoint,
                  wait_for_progress, wait_for_text)

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1"]
SHORT = [*DATA, "--steps", "40"]
ENDLESS = [*DATA, "--steps", "1000000", "--checkpoint-every", "50",
           "--eval-every", "never"]
SOON = ["--heartbeat-timeout", "1"]


class Hand(jobs.Hand):
    """Workers that were started by hand; none outlives the test."""

    def start(self, index, *flags, config=None, **more):
        words = ["train", "softmax", *flags]
        if config is None:
            words += ["--cluster", "c.json", "--role", "worker", "--index",
                      index]
        if index == 0:
            words += ["--run", "a", "--json"]
        env = {**self.cli.env, **({"TF_CONFIG": config} if config else {})}
        self.processes.append(self.cli.start(*words, env=env, **more))
        return self.processes[-1]


@pytest.fixture
def hand(cli):
    hand = Hand(cli)
    yield hand
    for process in hand.processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def write_workers(cli, count):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    (cli.folder / "c.json").write_text(
        json.dumps({"cluster": {"worker": addresses}}))
    return addresses


def ended_well(hand, started):
    results = [hand.end(process) for process in started]
    assert [result.code for result in results] == [0] * len(results), results
    return results


@pytest.fixture(scope="module")
def reference(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("reference"), home)
    return cli.train(*SHORT, "--engine", "ring",
                     "--workers", "3")["parameters_sha256"]


def test_the_order_of_start_does_not_matter(cli, hand, reference):
    for order in (2, 1, 0), (0, 2, 1):
        write_workers(cli, 3)
        started = {index: hand.start(index, *SHORT) for index in order}
        results = ended_well(hand, [started[index] for index in range(3)])
        assert results[0].json["parameters_sha256"] == reference
        assert results[1].out == "" and results[2].out == ""
        (cli.folder / "a").rename(cli.folder / f"a{order[0]}")


def test_tf_config_with_workers_and_no_ps(hand, reference):
    chief, *workers = (f"localhost:{port}" for port in free_ports(3))

    def config(role, index):
        return json.dumps({
            "cluster": {"chief": [chief], "worker": workers},
            "task": {"type": role, "index": index}})
    started = [hand.start(0, *SHORT, config=config("chief", 0)),
               hand.start(1, *SHORT, config=config("worker", 0)),
               hand.start(2, *SHORT, config=config("worker", 1))]
    results = ended_well(hand, started)
    assert results[0].json["parameters_sha256"] == reference
    assert results[0].json["strategy"] == "allreduce"


def test_keys(cli, hand, reference):
    cli.ok("keys", "-o", "job.key")
    cli.ok("keys", "-o", "other.key")
    write_workers(cli, 3)
    started = [hand.start(index, *SHORT, "--keys", "job.key")
               for index in range(3)]
    assert ended_well(hand, started)[0].json["parameters_sha256"] == reference
    write_workers(cli, 2)
    (cli.folder / "a").rename(cli.folder / "a1")
    stranger = hand.start(1, *SHORT, "--keys", "other.key")
    chief = hand.start(0, *SHORT, "--keys", "job.key")
    result = hand.end(stranger)
    assert result.code == 1 and "127.0.0.1:" in result.err, result
    chief.send_signal(signal.SIGINT)  # it waits for a worker with the key
    result = hand.end(chief)
    assert result.code == 130 and "while joining" in result.err, result


def test_beyond_loopback_keys_are_needed(cli):
    (cli.folder / "c.json").write_text(json.dumps(
        {"cluster": {"worker": ["10.1.2.3:7070", "10.1.2.4:7070"]}}))
    cli.refused(2, "train", "softmax", "--cluster", "c.json", "--role",
                "worker", "--index", "0",
                says=["worker 0 at 10.1.2.3:7070 can be reached",
                      "keys -o job.key"])


def test_open_files_of_the_coordinator_are_counted_at_its_start(cli):
    """Every other worker has a connection to it."""
    write_workers(cli, 40)
    result = subprocess.run(
        ["sh", "-c", 'ulimit -n 200; exec "$@"', "sh", program(), "train",
         "softmax", *SMALL, "--engine", "ring", "--cluster", "c.json",
         "--role", "worker", "--index", "0", "--join-timeout", "1"],
        cwd=cli.folder, env=cli.env, capture_output=True, text=True,
        timeout=DEADLINE_S, check=False)
    assert result.returncode == 2, result
    assert "a task of a job of 40 workers needs up to 236 open files" in \
        result.stderr


def test_a_missing_worker_is_named(cli, hand):
    addresses = write_workers(cli, 3)
    with knocked(addresses[0]):
        other = hand.start(2, *SHORT)
    chief = hand.start(0, *SHORT, "--join-timeout", "2")
    for process in chief, other:
        result = hand.end(process)
        assert result.code == 1
        assert f"worker 1 ({addresses[1]}) did not join within 2 s " \
               "(--join-timeout)" in result.err.splitlines()[-1], result


def test_settings_that_differ_are_named(cli, hand):
    write_workers(cli, 2)
    chief = hand.start(0, *SHORT)
    other = hand.start(1, *SHORT, "--lr", "0.25")
    results = hand.end(chief), hand.end(other)
    assert [result.code for result in results] == [1, 2], results
    for result in results:
        assert "--lr is 0.25 at worker 1 and" in result.err, result


@pytest.mark.parametrize("index", [0, 1])
def test_a_killed_worker_is_waited_for(cli, hand, index):
    """Restarted by hand it gets the job's parameters, or provides those of the
    last checkpoint: the bits are the same."""
    write_workers(cli, 2)
    started = [hand.start(worker, *ENDLESS, *SOON) for worker in range(2)]
    wait_for_checkpoint(cli, started[0])
    started[index].kill()
    started[index].communicate()
    flags = ["--resume"] if index == 0 else []
    started[index] = hand.start(index, *ENDLESS, *SOON, *flags)
    wait_for_progress(cli, started[0])
    same_bits(cli, hand.interrupt(*started), *DATA)


@pytest.mark.parametrize("index", [0, 1])
def test_a_frozen_worker_that_thaws_continues(cli, hand, index):
    write_workers(cli, 2)
    log = cli.folder / "other.log"
    with log.open("w") as file:
        started = {index: hand.start(index, *ENDLESS, *SOON)}
        started[1 - index] = hand.start(1 - index, *ENDLESS, *SOON,
                                        stderr=file)
    wait_for_checkpoint(cli, started[0])
    started[index].send_signal(signal.SIGSTOP)
    wait_for_text(log, f"worker {index} (127.0.0.1:", started[1 - index])
    started[index].send_signal(signal.SIGCONT)
    wait_for_progress(cli, started[0])
    same_bits(cli, hand.interrupt(started[0], started[1]), *DATA)
    assert re.search(r"is lost: it has been silent for \d+\.\d s",
                     log.read_text())
