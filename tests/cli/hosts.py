"""Hosts for the tests of `launch` and `doctor`.

Without privileges: loopback addresses, and instead of ssh a script that runs
the command here and records its arguments.
"""

import os
import shutil
import stat
import subprocess

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]

SCRIPT = """#!/bin/sh
# fake_ssh HOST COMMAND...
echo "$*" >> '{folder}/ssh.log'
case $1 in
*.99) echo "ssh: connect to host $1 port 22: No route to host" >&2; exit 255;;
*.98) exec sleep 1000;;
*.97) echo '{{"kind": "hello", "version": "9.9"}}'; exec sleep 1000;;
esac
echo "Welcome to $1" >&2
shift
cd /
exec sh -c "$*"
"""


def fake_ssh(folder):
    """The value of --ssh."""
    path = folder / "fake_ssh"
    if not path.exists():
        path.write_text(SCRIPT.format(folder=folder))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


MAPPED = """#!/bin/sh
# mapped_ssh HOST COMMAND...: what it says of {folder}/data is meant of a
# folder of the host
host=$1
shift
cd /
exec sh -c "$(printf %s "$*" | sed "s|{folder}/data/|{folder}/$host/data/|g")"
"""


def mapped_ssh(folder):
    """The value of --ssh for hosts that keep copies of their own."""
    path = folder / "mapped_ssh"
    path.write_text(MAPPED.format(folder=folder))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


APART = """#!/bin/sh
# apart_ssh HOST COMMAND...: a host with files and a name of its own
host=$1
shift
mkdir -p '{homes}'/$host
export HOME='{homes}'/$host XDG_CACHE_HOME=
exec unshare {flags} sh -c 'hostname node-'$host' &&
    mount -t tmpfs none "{folder}" && cd / && exec sh -c "$0"' "$*"
"""


def apart_ssh(folder, homes):
    """The value of --ssh for hosts that share nothing below `folder` with this
    one, and keep what they have in `homes`; None where that cannot be."""
    for flags in ("-mu", "-rmu"):
        if shutil.which("unshare") and subprocess.run(
                ["unshare", *flags.split(), "sh", "-c",
                 f"hostname a && mount -t tmpfs none '{folder}'"],
                capture_output=True).returncode == 0:
            path = homes / "apart_ssh"
            path.write_text(APART.format(folder=folder, homes=homes,
                                         flags=flags))
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            return str(path)
    return None


def descendants(pid):
    """All processes below this one."""
    found, todo = [], [pid]
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(name))
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found
