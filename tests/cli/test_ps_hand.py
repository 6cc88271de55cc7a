"""Tasks started one by one, in any order, with strangers that connect to their
ports."""

import json
import re
import signal
import socket

import pytest

import wire
from jobs import (free_ports, hand, knocked, same_bits, wait_for_checkpoint,
                  wait_for_progress, wait_for_text,
                  write_cluster)  # hand is a fixture

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--steps", "40"]
ENDLESS = [*DATA[:-1], "1000000", "--checkpoint-every", "100"]
SOON = ["--heartbeat-timeout", "1", "--rejoin-timeout", "2"]


def test_the_order_of_start_does_not_matter(cli, hand):
    """Workers first and servers last, or the other way: the same bits."""
    orders = [[("worker", 1), ("worker", 0), ("ps", 1), ("ps", 0)],
              [("ps", 0), ("worker", 1), ("ps", 1), ("worker", 0)]]
    shas = set()
    for order in orders:
        write_cluster(cli, 2, 2)
        started = {task: hand.start(*task, *DATA) for task in order}
        results = {task: hand.end(process)
                   for task, process in started.items()}
        for task, result in results.items():
            assert result.code == 0, (task, result)
            assert task == ("worker", 0) or result.out == ""
        shas.add(results["worker", 0].json["parameters_sha256"])
        (cli.folder / "a").rename(cli.folder / f"a{order[0][0]}")
    assert len(shas) == 1


def test_tf_config(cli, hand):
    ps, chief, worker = (f"localhost:{port}" for port in free_ports(3))
    cluster = {"ps": [ps], "chief": [chief], "worker": [worker]}
    started = [hand.start(
        role, 0, *DATA, cluster=False,
        env={"TF_CONFIG": json.dumps({"cluster": cluster, "task": {
            "type": role, "index": 0}})})
        for role in ("worker", "chief", "ps")]
    results = [hand.end(process) for process in started]
    assert [result.code for result in results] == [0, 0, 0], results
    assert results[1].json["workers"] == 2
    assert results[1].json["ps"] == 1


def test_a_task_with_other_settings_is_refused(cli, hand):
    """It learns which flag; the job continues when it returns with the right
    one."""
    write_cluster(cli, 2, 1)
    ps = hand.start("ps", 0, *DATA)
    chief = hand.start("worker", 0, *DATA)
    wrong = hand.end(hand.start("worker", 1, *DATA, "--lr", "0.25"))
    assert wrong.code in (1, 2), wrong
    assert "--lr is 0.25 here and" in wrong.err, wrong
    right = hand.end(hand.start("worker", 1, *DATA))
    assert right.code == 0, right
    assert hand.end(chief).code == 0
    result = hand.end(ps)
    assert result.code == 0 and "was refused" in result.err, result


def test_a_server_with_other_settings_is_refused(cli, hand):
    """By the first server, and by tasks that reach it before it has ended;
    then the others wait for one with the right settings."""
    address, _ = write_cluster(cli, 1, 2)
    flags = [*DATA, *SOON]
    with knocked(address):
        second = hand.start("ps", 1, *flags, "--optimizer", "adam")
    chief = hand.start("worker", 0, *flags)
    first = hand.start("ps", 0, *flags, "--join-timeout", "5")
    second = hand.end(second)
    assert second.code == 1, second
    assert "--optimizer is adam here and sgd at ps 0" in second.err, second
    for process in (chief, first):
        result = hand.end(process)
        assert result.code == 1, result
        last = result.err.splitlines()[-1]
        assert "--optimizer is sgd here and adam at ps 1" in last or \
            re.search("ps 1 .*within 5 s .--join-timeout", last), result


def test_a_port_in_use_is_named(cli, hand):
    address, = write_cluster(cli, 1, 1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(address.split(":")[1])))
        other.listen()
        result = hand.end(hand.start("ps", 0, *DATA))
    assert result.code == 1, result
    assert f"listen on {address}: the port is in use" in result.err


def test_absent_tasks_are_named(cli, hand):
    """Each names the task that it waits for, and gives up."""
    address, = write_cluster(cli, 2, 1)
    timeout = ["--join-timeout", "9"]
    alone = hand.start("worker", 1, *DATA, *timeout)
    result = hand.end(alone)
    assert result.code == 1, result
    assert f"worker 1 waits for ps 0 at {address}" in result.err
    assert f"ps 0 at {address} did not answer within 9 s (--join-timeout)" \
        in result.err.splitlines()[-1]


def test_a_server_gives_up_on_absent_tasks(cli, hand):
    address, = write_cluster(cli, 2, 1)
    timeout = ["--join-timeout", "2"]
    empty = hand.end(hand.start("ps", 0, *DATA, *timeout))
    assert empty.code == 1, empty
    assert f"no worker joined ps 0 at {address} within 2 s" in empty.err
    with knocked(address):
        chief = hand.start("worker", 0, *DATA)
    ps = hand.start("ps", 0, *DATA, *timeout)
    for process in (ps, chief):
        result = hand.end(process)
        assert result.code == 1, result
        assert "worker 1 did not join within 2 s" in result.err, result


def test_strangers_at_the_port_do_no_harm(cli, hand):
    """Slow bytes, other protocols and other versions: refused and named."""
    address, = write_cluster(cli, 2, 1)
    log = cli.folder / "ps.log"
    with log.open("wb") as file:
        job = [hand.start("ps", 0, *ENDLESS, stderr=file)]
    wait_for_text(log, "listens on", job[0])
    slow = [wire.connect(address) for _ in range(2)]
    slow[0].sendall(wire.hello()[:3])
    slow[1].sendall(b"GET / HTTP/1.1\r\nHost: there\r\n\r\n")
    garbage = wire.connect(address)
    garbage.sendall(b"\xff" * 1000)
    wait_for_text(log, "no paceline task is there", job[0])
    job += [hand.start("worker", i, *ENDLESS) for i in range(2)]
    wait_for_checkpoint(cli, job[1])
    wrong = [
        ([wire.header(version=wire.VERSION + 1)],
         f"version {wire.VERSION + 1} of the protocol, but this program "
         f"uses version {wire.VERSION}: run the same paceline everywhere"),
        ([b"hello, is this a web server?"], "does not begin with PLN1"),
        ([wire.header(kind=6, payload_bytes=1000), b"short"],
         "announces 1000 bytes of payload, but has 5"),
        ([wire.header()[:40]], "message header of 40 bytes, expected 72"),
    ]
    peers = [wire.join(address) for _ in wrong]
    for peer, (parts, _) in zip(peers, wrong):
        wire.send(peer, *parts)
    pushy = wire.join(address)
    wire.send(pushy, wire.header(kind=6))
    for peer in peers:
        wait_for_text(log, wire.name_of(peer), job[0])
    wait_for_progress(cli, job[1])
    summary = hand.interrupt(job[1], job[0], job[2])
    text = log.read_text()
    for peer, (_, says) in zip(peers, wrong):
        lines = [line for line in text.splitlines()
                 if wire.name_of(peer) in line]
        assert len(lines) == 1 and says in lines[0], (says, text)
    for peer in [*slow, garbage, *peers, pushy]:
        peer.close()
    same_bits(cli, summary, *DATA[:-2])


@pytest.mark.parametrize("victim", ["ps", "worker 1", "worker 0"])
def test_ctrl_c_of_one_ends_all(cli, hand, victim):
    write_cluster(cli, 2, 1)
    job = {"ps": hand.start("ps", 0, *ENDLESS),
           "worker 0": hand.start("worker", 0, *ENDLESS),
           "worker 1": hand.start("worker", 1, *ENDLESS)}
    wait_for_checkpoint(cli, job["worker 0"])
    job[victim].send_signal(signal.SIGINT)
    results = {name: hand.end(process) for name, process in job.items()}
    chief = results["worker 0"]
    assert chief.code == 130 and chief.json["stopped_by"] == "interrupt", \
        results
    assert "to continue:" in chief.err
    assert results[victim].code in (0, 130), results
    assert results["worker 1"].code in (0, 130), results
    step = chief.json["steps"]
    again = cli.train("--resume", "--run", "a", "--strategy", "single",
                      "--steps", step + 100)
    assert again["steps"] == step + 100
    assert again["resumed_step"] == step
    assert again["deterministic"] is False


def test_ctrl_c_before_all_have_joined(cli, hand):
    """No task waits for one that has not joined."""
    write_cluster(cli, 3, 1)
    log = cli.folder / "ps.log"
    with log.open("wb") as file:
        ps = hand.start("ps", 0, *DATA, stderr=file)
    worker = hand.start("worker", 1, *DATA)
    chief = hand.start("worker", 0, *DATA)
    for index in range(2):
        wait_for_text(log, f"worker {index} joined", ps)
    ps.send_signal(signal.SIGINT)
    for process in (ps, worker, chief):
        result = hand.end(process)
        assert result.code in (0, 1, 130), result


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_server_is_named_to_all(cli, hand, victim):
    """It is not restarted: the others wait a while, then report it."""
    addresses = write_cluster(cli, 2, 2)
    flags = [*ENDLESS, *SOON]
    job = [hand.start("ps", 0, *flags), hand.start("ps", 1, *flags),
           hand.start("worker", 0, *flags), hand.start("worker", 1, *flags)]
    wait_for_checkpoint(cli, job[2])
    job.pop(victim).kill()
    for process in job:
        result = hand.end(process)
        assert result.code == 1, result
        last = result.err.splitlines()[-1]
        assert f"ps {victim} " in last and addresses[victim] in last, result
        if victim == 1:
            assert "did not come back within 2 s (--rejoin-timeout)" in last, \
                result


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_server_may_come_back(cli, hand, victim):
    """Restarted by hand, the job continues, in the same bits."""
    write_cluster(cli, 2, 2)
    flags = [*ENDLESS, "--heartbeat-timeout", "1"]
    job = [hand.start("ps", 0, *flags), hand.start("ps", 1, *flags),
           hand.start("worker", 0, *flags), hand.start("worker", 1, *flags)]
    wait_for_checkpoint(cli, job[2])
    job[victim].kill()
    hand.end(job[victim])
    job[victim] = hand.start("ps", victim, *flags)
    wait_for_progress(cli, job[2])
    chief = job.pop(2)
    same_bits(cli, hand.interrupt(chief, *job), *DATA[:-2])
