"""Hosts for the tests of `launch` and `doctor`.

Without rights: loopback addresses, and instead of ssh a script that runs the
command here and notes what it was called with.
"""

import os
import stat

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
