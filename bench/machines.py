#!/usr/bin/env python3
"""Performance of jobs on many machines, in network namespaces of this one.

usage: bench/machines.py PACELINE [network | launch | vanish | matmul]...

  network  bandwidth that `doctor` measures between two hosts, over that of a
           plain TCP stream in the same run, at 100 Mbit/s, 1 and 10
           Gbit/s (tc tbf)
  launch   seconds of a job of 3 hosts over ssh beyond those of the slowest
           ssh connection and of the job itself
  vanish   seconds from the cut of a host's cable in training until `launch`
           names the host
  matmul   speed of 2 workers, n = 8192, over one process with both cores

Needs root, iproute2, openssh-server.  Each figure is the median of REPEAT
runs; network and launch alternate with their reference.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "tests/fault")]
import netns  # noqa: E402
from test_slow_machines import SSH, SSHD  # noqa: E402

REPEAT = 5
WARM_S, MEASURE_S = 0.3, 2.0
STREAM = """
import socket, sys, time
if sys.argv[1] == "receive":
    with socket.create_server((sys.argv[2], 5001)) as server:
        print("ready", flush=True)
        peer, _ = server.accept()
        room, begin, count = bytearray(262144), None, 0
        first = None
        while got := peer.recv_into(room):
            now = time.monotonic()
            first = first or now
            if begin is None and now - first >= {warm}:
                begin = now
            elif begin is not None:
                count, last = count + got, now
        print(count / (last - begin))
else:
    with socket.create_connection((sys.argv[2], 5001)) as peer:
        chunk, end = bytes(262144), time.monotonic() + {warm} + {measure}
        while time.monotonic() < end:
            peer.sendall(chunk)
""".format(warm=WARM_S, measure=MEASURE_S)


def stream(network):
    """Bytes a second from host 0 to host 1."""
    def start(host, what):
        return subprocess.Popen(
            network.command(host, [sys.executable, "-c", STREAM, what,
                                   network.address(1)]),
            stdout=subprocess.PIPE, text=True)
    receiver = start(1, "receive")
    assert receiver.stdout.readline() == "ready\n"
    start(0, "send").wait()
    return float(receiver.communicate()[0])


class Hosts:
    """Namespaces with an sshd each."""

    def __init__(self, network, count, folder):
        self.network, self.count = network, count
        for name in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "",
                            "-f", f"{folder}/{name}"], check=True)
        pathlib.Path(f"{folder}/sshd").write_text(SSHD.format(folder=folder))
        pathlib.Path(f"{folder}/ssh").write_text(SSH.format(folder=folder))
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        self.ssh = f"ssh -F {folder}/ssh"
        self.servers = [subprocess.Popen(
            network.command(host, ["/usr/sbin/sshd", "-D", "-f",
                                   f"{folder}/sshd"]))
            for host in range(count)]
        for host in range(count):
            while self.run(host, "true").returncode != 0:
                time.sleep(0.1)

    def run(self, host, command):
        return subprocess.run(self.network.command(
            0, [*self.ssh.split(), self.network.address(host), command]),
            capture_output=True, text=True)

    def names(self):
        return ",".join(self.network.address(h) for h in range(self.count))

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait()


def measure_network(program, hosts):
    for rate in ("100mbit", "1gbit", "10gbit"):
        hosts.network.slow(rate)
        ratios, speeds = [], []
        for _ in range(REPEAT):
            plain = stream(hosts.network)
            out = subprocess.run(hosts.network.command(
                0, [program, "doctor", "--json", "--seconds", str(MEASURE_S),
                    "--ssh", hosts.ssh, "--hosts",
                    ",".join(hosts.network.address(h) for h in range(2))]),
                capture_output=True, text=True, check=True).stdout
            way = json.loads(out)["ways"][0]
            speeds.append(way["bytes_per_s"] * 8e-6)
            ratios.append(way["bytes_per_s"] / plain)
        print(f"network {rate:>8}: doctor {statistics.median(speeds):8.1f} "
              f"Mbit/s, {statistics.median(ratios):.3f} of a plain stream "
              f"({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


def timed(command, **more):
    begin = time.monotonic()
    subprocess.run(command, check=True, capture_output=True, **more)
    return time.monotonic() - begin


def measure_launch(program, hosts):
    train = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
             "--steps", "50", "--workers", "3", "--ps", "1"]
    beyond = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(REPEAT):
            ssh = max(timed(hosts.network.command(
                0, [*hosts.ssh.split(), hosts.network.address(h), "true"]))
                for h in range(hosts.count))
            local = timed([program, *train], cwd=folder)
            spread = timed(hosts.network.command(
                0, [program, "launch", "--ssh", hosts.ssh, "--hosts",
                    hosts.names(), "--", *train]), cwd=folder)
            beyond.append(spread - local - ssh)
    print(f"launch 3 hosts: {statistics.median(beyond):.2f} s beyond the job "
          f"and the slowest ssh ({min(beyond):.2f} to {max(beyond):.2f})",
          flush=True)


def vanish_once(program, hosts, folder):
    process = subprocess.Popen(hosts.network.command(
        0, [program, "launch", "--ssh", hosts.ssh, "--hosts", hosts.names(),
            "--", "train", "softmax", "--data", "synthetic", "--examples",
            "2000", "--steps", "100000000", "--workers", "3", "--ps", "1",
            "--checkpoint-every", "10", "--run", "run"]),
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True)
    while not list(pathlib.Path(folder).glob(
            "run/checkpoints/step-*0/manifest.json")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    hosts.network.cut(2)
    begin = time.monotonic()
    lost = hosts.network.address(2)
    for line in process.stderr:
        if f"{lost} is lost" in line:
            break
    seconds = time.monotonic() - begin
    process.communicate()
    hosts.network.heal(2)
    return seconds


def measure_vanish(program, hosts):
    found = []
    for _ in range(REPEAT):
        with tempfile.TemporaryDirectory() as folder:
            found.append(vanish_once(program, hosts, folder))
    print(f"vanish: a host is named {statistics.median(found):.2f} s after its "
          f"cable was cut ({min(found):.2f} to {max(found):.2f})", flush=True)


def measure_matmul(program):
    ratios = []
    for _ in range(REPEAT):
        out = subprocess.run([program, "matmul", "--n", "8192", "--workers",
                              "2", "--compare", "--json"], check=True,
                             capture_output=True, text=True).stdout
        found = json.loads(out)
        ratios.append(found["ratio"])
    print(f"matmul n = 8192, 2 workers: {found['gflops']:.1f} GFLOP/s, "
          f"{statistics.median(ratios):.2f} of one process "
          f"({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    wanted = sys.argv[2:] or ["network", "launch", "vanish", "matmul"]
    if "matmul" in wanted:
        measure_matmul(program)
    if not {"network", "launch", "vanish"} & set(wanted):
        return
    netns.remove_leftovers()
    with netns.Network("bench", 3) as network, \
            tempfile.TemporaryDirectory() as folder:
        hosts = Hosts(network, 3, folder)
        try:
            if "launch" in wanted:
                measure_launch(program, hosts)
            if "vanish" in wanted:
                measure_vanish(program, hosts)
            if "network" in wanted:
                measure_network(program, hosts)
        finally:
            hosts.close()


if __name__ == "__main__":
    main()
