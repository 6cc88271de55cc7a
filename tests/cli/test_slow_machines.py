"""Hosts as network namespaces on a switch: `launch` and `doctor` over a real
sshd, tasks started by hand with TF_CONFIG, cables that are slow or cut."""

import json
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys

import pytest

from conftest import ROOT, SMALL, program, wait_for
from jobs import gone

sys.path.insert(0, str(ROOT / "tests/fault"))
import netns  # noqa: E402
from test_mnist import FOLDER as MNIST  # noqa: E402

HOSTS = 3
LONG = ["--data", "synthetic", "--examples", 2000, "--steps", 100000000]

SSHD = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
"""

SSH = """
Host *
    IdentityFile {folder}/user_key
    UserKnownHostsFile /dev/null
    StrictHostKeyChecking no
    LogLevel ERROR
"""


@pytest.fixture(scope="module")
def network():
    reason = netns.why_not()
    if reason is not None:
        pytest.skip(reason)
    netns.remove_leftovers()
    with netns.Network("machines", HOSTS) as made:
        yield made


@pytest.fixture(scope="module")
def ssh(network, tmp_path_factory):
    """An sshd on every host; the value of --ssh."""
    if shutil.which("sshd", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("without sshd, of the package openssh-server")
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                        folder / name], check=True)
    (folder / "sshd").write_text(SSHD.format(folder=folder))
    (folder / "ssh").write_text(SSH.format(folder=folder))
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    servers = [subprocess.Popen(
        network.command(host, ["/usr/sbin/sshd", "-D", "-e", "-f",
                               str(folder / "sshd")]),
        stderr=(folder / f"log{host}").open("w"))
        for host in range(HOSTS)]
    command = f"ssh -F {folder}/ssh"
    for host in range(HOSTS):
        wait_for(lambda: subprocess.run(
            network.command(0, [*command.split(), network.address(host),
                                "true"]), capture_output=True).returncode == 0,
            f"sshd of host {host}", servers[host])
    yield command
    for server in servers:
        server.terminate()
        server.wait()


def start(cli, network, host, *words, **more):
    """The program on a host."""
    more.setdefault("env", cli.env)
    return subprocess.Popen(
        network.command(host, [program(), *map(str, words)]), cwd=cli.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **more)


def ok(cli, process):
    result = cli.end(process)
    assert result.code == 0, result
    return result


def launch(cli, network, ssh, *flags, train=SMALL, more=()):
    hosts = ",".join(network.address(host) for host in range(HOSTS))
    return start(cli, network, 0, "launch", "--ssh", ssh, "--hosts", hosts,
                 *more, "--", "train", "softmax", "--json", "--workers", 3,
                 "--ps", 1, *train, *flags)


def processes(words):
    """Those whose command line has this text."""
    found = []
    for name in os.listdir("/proc"):
        try:
            text = pathlib.Path(f"/proc/{name}/cmdline").read_bytes() \
                if name.isdigit() else b""
        except OSError:
            continue
        if words.encode() in text.replace(b"\0", b" "):
            found.append(int(name))
    return found


@pytest.fixture
def healed(network):
    yield network
    for host in range(HOSTS):
        network.heal(host)


def test_ssh_starts_a_job_with_the_bits_of_one_machine(cli, network, ssh):
    here = cli.train("--workers", 3, "--ps", 1, *SMALL)
    there = ok(cli, launch(cli, network, ssh, "--run", "there"))
    assert there.json["parameters_sha256"] == here["parameters_sha256"]
    assert "worker 2 on 10.0.0.3: " in there.err, there
    assert (cli.folder / "there/log/worker-2.log").exists()
    assert not processes(str(cli.folder / "there"))


def test_ssh_starts_a_ring(cli, network, ssh):
    here = cli.train("--workers", 3, "--engine", "ring", *SMALL)
    hosts = ",".join(network.address(host) for host in range(HOSTS))
    there = ok(cli, start(cli, network, 0, "launch", "--ssh", ssh, "--hosts",
                          hosts, "--", "train", "softmax", "--json", *SMALL))
    assert there.json["parameters_sha256"] == here["parameters_sha256"]


def test_ssh_copies_the_program(cli, network, ssh):
    there = ok(cli, launch(cli, network, ssh, more=["--copy"]))
    assert there.json["steps"] == 50


def test_host_cut_off_before_the_start_is_named(cli, healed, ssh):
    healed.cut(2)
    result = cli.end(launch(cli, healed, ssh))
    assert result.code == 1
    assert "10.0.0.3 does not answer" in result.err, result


def test_host_cut_off_in_training_is_named_and_ends(cli, healed, ssh):
    process = launch(cli, healed, ssh, "--run", "cut", train=LONG)
    log = cli.folder / "cut/log/worker-2.log"
    assert wait_for(lambda: log.exists() and log.stat().st_size > 0,
                    "worker 2", process)
    pids = processes("--run cut")
    healed.cut(2)
    result = cli.end(process)
    assert result.code == 1
    assert "10.0.0.3 is lost; ending the job" in result.err, result
    assert "10.0.0.3 has been silent for" in result.err.splitlines()[-1], \
        result
    gone(pids)


def test_doctor_measures_the_links(cli, network, ssh):
    network.slow("100mbit")
    hosts = ",".join(network.address(host) for host in range(2))
    found = ok(cli, start(cli, network, 0, "doctor", "--json", "--ssh", ssh,
                          "--hosts", hosts)).json
    network.slow("10gbit")
    assert len(found["ways"]) == 2
    # 12.5e6, or what a machine with other work has time for.
    for way in found["ways"]:
        assert 1e6 < way["bytes_per_s"] < 25e6


def tasks_by_hand(cli, network, *flags):
    """Three workers and a server, in random order, with TF_CONFIG."""
    cluster = {"ps": [f"{network.address(0)}:4000"],
               "worker": [f"{network.address(host)}:4001"
                          for host in range(HOSTS)]}
    order = [("ps", 0, 0)] + [("worker", host, host) for host in range(HOSTS)]
    random.shuffle(order)
    started = {}
    for role, index, host in order:
        task = {"cluster": cluster, "task": {"type": role, "index": index}}
        env = dict(cli.env, TF_CONFIG=json.dumps(task),
                   PACELINE_KEYS=str(cli.folder / "job.key"))
        started[role, index] = start(cli, network, host, "train", "softmax",
                                     "--json", *SMALL, *flags, env=env)
    return started


@pytest.mark.parametrize("rate", ["10gbit", "1gbit"])
def test_tasks_started_by_hand_in_any_order(cli, network, rate):
    here = cli.train("--workers", 3, "--ps", 1, *SMALL)
    cli.ok("keys", "-o", "job.key")
    network.slow(rate)
    started = tasks_by_hand(cli, network, "--run", "by-hand")
    results = {task: cli.end(process) for task, process in started.items()}
    network.slow("10gbit")
    assert [r.code for r in results.values()] == [0] * 4, results
    assert results["worker", 0].json["parameters_sha256"] == \
        here["parameters_sha256"]


def test_matmul_by_cluster_file(cli, network):
    cli.ok("keys", "-o", "job.key")
    (cli.folder / "c.json").write_text(json.dumps({"cluster": {
        "worker": [f"{network.address(h)}:4100" for h in range(HOSTS)]}}))
    started = [start(cli, network, host, "matmul", "--n", 1000, "--json",
                     "--cluster", "c.json", "--index", host, "--keys",
                     "job.key") for host in (2, 0, 1)]
    results = [cli.end(process) for process in started]
    assert [r.code for r in results] == [0] * 3, results
    assert results[1].json["verified"]


# HOST COMMAND...: by ssh, and there with a name of its own, and with neither
# the folder of the test nor a shared home.
APART = r"""#!/bin/sh
address=$1
number=${{address##*.}}
shift
command=$(printf %s "$*" | sed "s/'/'\\\\''/g")
exec {ssh} $address "exec unshare -mu sh -c '
    hostname node'$number' && mount -t tmpfs none {folder} &&
    mount -t tmpfs none ~ && cd / && exec sh -c \"\$0\"' '$command'"
"""


@pytest.fixture
def apart(cli, ssh, tmp_path_factory):
    """The value of --ssh for hosts that share nothing with this one."""
    path = tmp_path_factory.mktemp("apart") / "ssh"
    path.write_text(APART.format(ssh=ssh, folder=cli.folder))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def check_records(run):
    """Those of all hosts are there."""
    nodes = {f"node{host + 1}" for host in range(HOSTS)}
    tasks = ["ps-0", *(f"worker-{host}" for host in range(HOSTS))]
    assert {path.stem for path in (run / "resources").glob("*.csv")} == nodes
    for task in tasks:
        assert any((run / "events" / task).iterdir()), task
        assert (run / f"log/{task}.log").stat().st_size > 0
    assert {"start", "test"} <= {
        json.loads(line)["event"]
        for line in (run / "timeline.jsonl").read_text().splitlines()}
    assert list((run / "checkpoints").glob("*/manifest.json"))
    summary = json.loads((run / "summary.json").read_text())
    assert {row["host"] for row in summary["per_worker"]} == nodes
    return summary


def test_hosts_that_share_nothing_have_one_run_folder(cli, network, apart):
    here = cli.train("--workers", 3, "--ps", 1, *SMALL)
    there = ok(cli, launch(cli, network, apart, "--run", "there"))
    assert check_records(cli.folder / "there") == there.json
    assert there.json["parameters_sha256"] == here["parameters_sha256"]


def test_experiments_over_hosts_have_one_report(cli, network, apart):
    """A5 and, at one batch size, C3, whose hosts share nothing."""
    hosts = ",".join(network.address(host) for host in range(HOSTS))
    names = "a5-workers", "c3-stop-loss-sync"
    for name in names:
        text = (ROOT / f"examples/sweeps/{name}.sweep").read_text()
        (cli.folder / f"{name}.sweep").write_text(
            text.replace("0.6 batch=1,20,100,600", "0.6 batch=100"))
    data = ["--data", f"mnist:{MNIST}"] if MNIST.is_dir() else []
    ok(cli, start(cli, network, 0, "sweep", "--hosts", hosts, "--ssh", apart,
                  "--quick", *(f"{name}.sweep" for name in names), *data,
                  "--out", "s"))
    of_all = sorted(path for path in (cli.folder / "s").glob("*/*workers-3*")
                    if path.is_dir())
    assert len(of_all) == 2 + 1
    for run in of_all:
        summary = check_records(run)
        wanted = "epochs" if run.parent.name == names[0] else "stop_loss"
        assert summary["stopped_by"] == wanted
    cli.ok("report", "s", "-o", "report.html", "--files", "files")
    page = (cli.folder / "report.html").read_text()
    assert all(f"node{host + 1}" in page for host in range(HOSTS))
    for name, count in zip(names, (6, 3)):
        rows = (cli.folder / f"files/{name}-runs.csv").read_text()
        assert len(rows.splitlines()) == 1 + count
