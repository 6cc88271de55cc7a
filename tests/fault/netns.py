"""Networks of namespaces: hosts on a switch, whose cables can be pulled and
made slow.

Needs root and iproute2.  Names carry the process that made them, so that what
a killed test left behind is removed by the next.
"""

import os
import pathlib
import subprocess

PREFIX = "plfault"
RATES = {"100mbit": "256kb", "1gbit": "1mb", "10gbit": "10mb"}  # and bursts


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True,
                   text=True)


def why_not():
    """Why there can be no namespaces here; None: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with Network("try", 1):
            return None
    except FileNotFoundError:
        return "network namespaces need ip, of the package iproute2"
    except subprocess.CalledProcessError as error:
        return f"no network namespaces here: {error.stderr.strip()}"


def remove_leftovers():
    """Of processes that are no more."""
    for path in pathlib.Path("/run/netns").glob(f"{PREFIX}-*"):
        if not pathlib.Path(f"/proc/{path.name.split('-')[1]}").exists():
            subprocess.run(["ip", "netns", "del", path.name], check=False)


class Network:
    """`hosts` namespaces with the addresses 10.0.0.1 and on."""

    def __init__(self, number, hosts):
        self.name = f"{PREFIX}-{os.getpid()}-{number}"
        self.made = []
        try:
            self._add(self.name)
            ip("-n", self.name, "link", "add", "switch", "type", "bridge")
            ip("-n", self.name, "link", "set", "switch", "up")
            for host in range(hosts):
                self._add_host(host)
        except BaseException:
            self.close()
            raise

    def _add(self, name):
        ip("netns", "add", name)
        self.made.append(name)

    def _add_host(self, host):
        self._add(self.host(host))
        ip("-n", self.name, "link", "add", f"port{host}", "type", "veth",
           "peer", "name", "eth0", "netns", self.host(host))
        ip("-n", self.name, "link", "set", f"port{host}", "master", "switch",
           "up")
        ip("-n", self.host(host), "addr", "add", f"{self.address(host)}/24",
           "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", self.host(host), "link", "set", device, "up")

    def host(self, host):
        return f"{self.name}-{host}"

    def address(self, host):
        return f"10.0.0.{host + 1}"

    def command(self, host, words):
        """What runs `words` there, as this very process."""
        return ["ip", "netns", "exec", self.host(host), *words]

    def slow(self, rate, burst=None):
        """All cables carry no more than this, each way; of RATES."""
        for host in range(len(self.made) - 1):
            self.slow_host(host, rate, burst or RATES[rate])

    def slow_host(self, host, rate, burst):
        """The cable of one host, each way."""
        for name, device in ((self.name, f"port{host}"),
                             (self.host(host), "eth0")):
            subprocess.run(
                ["tc", "-n", name, "qdisc", "replace", "dev", device, "root",
                 "tbf", "rate", rate, "burst", burst, "latency", "50ms"],
                check=True, capture_output=True, text=True)

    def cut(self, host):
        ip("-n", self.name, "link", "set", f"port{host}", "down")

    def heal(self, host):
        ip("-n", self.name, "link", "set", f"port{host}", "up")

    def close(self):
        for name in reversed(self.made):
            subprocess.run(["ip", "netns", "del", name], check=False,
                           capture_output=True)
        self.made = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
