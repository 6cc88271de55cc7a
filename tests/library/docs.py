#!/usr/bin/env python3
"""Compile and run the programs of a document.

usage: docs.py DOCUMENT INCLUDE LIBRARY COMPILER [FLAG...]

A program is a fenced block of C or C++ that begins with the comment "name.c -
..."; the fenced text after it is its output.  Numbers are compared, too.  The
one called task is run once more as the tasks of a cluster.
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

PROGRAM = re.compile(r"^```(c|cpp)\n(/\* (\w+)\.\1 - .*?)^```\n\s*"
                     r"^```text\n(.*?)^```$", re.M | re.S)
CXX = os.environ.get("CXX", "g++")


def free_ports(count):
    """Ports of this host that are free."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def run_cluster(program, work, env):
    """A server and two workers, each a process; only the chief prints."""
    server, *workers = [f"127.0.0.1:{p}" for p in free_ports(3)]
    cluster = {"ps": [server], "worker": workers}
    pathlib.Path(work, "cluster.json").write_text(
        json.dumps({"cluster": cluster}))
    tasks = [subprocess.Popen([program, "cluster.json", role, str(index)],
                              cwd=work, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for role, index in (("ps", 0), ("worker", 0), ("worker", 1))]
    ended = [(*t.communicate(timeout=120), t.returncode) for t in tasks]
    wanted = [("", "", 0), ("10 steps\n", "", 0), ("", "", 0)]
    return "" if ended == wanted else f"task.c in a cluster: {ended}\n"


def main(document, include, library, compiler, *flags):
    """Run all programs; the number of those that failed."""
    programs = PROGRAM.findall(pathlib.Path(document).read_text())
    kinds = {"c": [compiler, "-std=c11"], "cpp": [CXX, "-std=c++17"]}
    assert len(programs) >= 6, f"{document}: only {len(programs)} programs"
    assert {kind for kind, *_ in programs} == set(kinds)
    folder = pathlib.Path(library).parent
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, "TMPDIR": work}
        for kind, text, name, expected in programs:
            source = pathlib.Path(work, f"{name}.{kind}")
            source.write_text(text)
            binary = str(source.with_suffix(""))
            subprocess.run(
                [*kinds[kind], *flags, "-Wall", "-Wextra", "-Wpedantic",
                 "-Werror", f"-I{include}", "-o", binary, str(source), library, "-lm",
                 f"-Wl,-rpath,{folder.resolve()}"], check=True)
            done = subprocess.run([binary], cwd=work, capture_output=True,
                                  text=True, env=env)
            if name == "task":
                wrong = run_cluster(binary, work, env)
                failed += bool(wrong)
                print(wrong, end="")
            if done.returncode or done.stderr or done.stdout != expected:
                print(f"{source.name}: exit status {done.returncode}\n"
                      f"{done.stderr}printed:\n{done.stdout}"
                      f"expected:\n{expected}")
                failed += 1
            left = [p.name for p in pathlib.Path(work).glob("paceline-*")]
            if left:
                print(f"{source.name}: left {left} behind")
                failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
