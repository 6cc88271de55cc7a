"""A Slurm cluster of two nodes on this machine: munged, slurmctld and two
slurmd, with their own key, ports and folders.

Needs root.  The names of the nodes mean something only in a mount namespace
with a hosts file of its own, in which all of it runs.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

CONF = """
ClusterName=paceline
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/d.%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d.%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/d.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
MpiDefault=none
ReturnToService=2
SlurmdTimeout=30
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "unshare",
            "nsenter"]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def why_not():
    """Why there can be no such cluster here; None: there can."""
    if os.geteuid() != 0:
        return "a Slurm cluster of our own needs root"
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"without {', '.join(missing)}" if missing else None


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class Slurm:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.daemons = []
        self.env = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"))
        try:
            self._prepare()
            self._start()
        except BaseException:
            self.close()
            raise

    def _prepare(self):
        for name in ("state", "d.n1", "d.n2"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (self.folder / "hosts").write_text(
            "127.0.0.1 localhost n1\n127.0.0.2 n2\n"
            f"127.0.0.1 {socket.gethostname()}\n")
        (self.folder / "slurm.conf").write_text(CONF.format(
            host=socket.gethostname(), folder=self.folder,
            ports=free_ports(3)))
        # Holds the namespace open.
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c",
             f"mount --bind {self.folder}/hosts /etc/hosts && echo ready && "
             "exec sleep 100000"], stdout=subprocess.PIPE)
        self.daemons.append(self.holder)
        assert self.holder.stdout.readline() == b"ready\n"

    def command(self, *words):
        return ["nsenter", "--mount", f"--target={self.holder.pid}",
                f"--wdns={os.getcwd()}", *map(str, words)]

    def _daemon(self, *words):
        self.daemons.append(subprocess.Popen(
            self.command(*words), env=self.env, stdout=subprocess.DEVNULL,
            stderr=(self.folder / "daemons.log").open("a")))

    def _wait(self, condition, what):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, \
                (what, (self.folder / "daemons.log").read_text())
            time.sleep(0.05)

    def _start(self):
        folder = self.folder
        self._daemon("munged", "--foreground", "--force",
                     f"--key-file={folder}/munge.key",
                     f"--socket={folder}/munge.socket",
                     f"--pid-file={folder}/munge.pid",
                     f"--log-file={folder}/munge.log",
                     f"--seed-file={folder}/munge.seed")
        self._wait((folder / "munge.socket").exists, "munged")
        self._daemon("slurmctld", "-D", "-c", "-f", folder / "slurm.conf")
        for node in ("n1", "n2"):
            self._daemon("slurmd", "-D", "-f", folder / "slurm.conf", "-N",
                         node)
        self._wait(lambda: self.run("sinfo", "-h", "-o", "%t").stdout.split()
                   == ["idle"], "two idle nodes")

    def run(self, *words, **more):
        return subprocess.run(self.command(*words), env=self.env, text=True,
                              capture_output=True, timeout=300, **more)

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
