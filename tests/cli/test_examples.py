"""The files of examples/ that a user copies: for Kubernetes, ssh and systemd.

Those for Slurm are in test_slow_slurm.py, the programs in tests/examples."""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, program, skip_when_sanitized
from hosts import HOSTS, fake_ssh
from jobs import free_ports

PROGRAM = program()
EXAMPLES = ROOT / "examples"


def pod_script(path):
    """The shell script of a pod: the block behind "- |"."""
    lines, found = path.read_text().splitlines(), []
    start = next(i for i, line in enumerate(lines) if line.strip() == "- |")
    depth = len(lines[start]) - len(lines[start].lstrip())
    for line in lines[start + 1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
        found.append(line.strip())
    return "\n".join(found)


def run_pods(cli, script, environments):
    """Each pod's standard output; a process of this machine stands in for it,
    with the folders of its volumes below the test's, and a short training."""
    cli.ok("keys", "-o", "job.key")
    script = (script.replace("/keys/job.key", f"{cli.folder}/job.key")
              .replace("/runs/demo", f"{cli.folder}/demo"))
    script, count = re.subn(
        "exec paceline train lenet",
        f"exec {PROGRAM} train softmax --steps 50 --json", script)
    assert count == 1, script
    pods = []
    for index, environment in enumerate(environments):
        home = cli.folder / f"pod{index}"
        home.mkdir()
        pods.append(subprocess.Popen(
            ["sh", "-c", script], cwd=home, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment, "HOME": str(home)}))
    said = [pod.communicate() for pod in pods]
    assert [pod.returncode for pod in pods] == [0] * len(pods), said
    return [out for out, _ in said]


def test_the_kubernetes_job_trains_as_three_processes(cli):
    script = pod_script(EXAMPLES / "kubernetes/indexed_job.yaml")
    for pod, port in enumerate(free_ports(3)):
        script = script.replace(f"demo-{pod}.demo:4000", f"127.0.0.1:{port}")
    said = run_pods(cli, script, [{"JOB_COMPLETION_INDEX": str(index)}
                                  for index in range(3)])
    assert json.loads(said[1])["steps"] == 50


def test_the_tfjob_trains_as_the_replicas_that_it_names(cli):
    text = (EXAMPLES / "kubernetes/tfjob.yaml").read_text()
    replicas = re.findall(r"^    (\w+):\n      replicas: (\d+)$", text, re.M)
    assert replicas == [("Chief", "1"), ("Worker", "2"), ("PS", "1")]
    tasks = [(role.lower(), index) for role, count in replicas
             for index in range(int(count))]
    cluster = {}
    for (role, _), port in zip(tasks, free_ports(len(tasks))):
        cluster.setdefault(role, []).append(f"127.0.0.1:{port}")
    # The operator writes this for each pod.
    said = run_pods(cli, pod_script(EXAMPLES / "kubernetes/tfjob.yaml"), [
        {"TF_CONFIG": json.dumps({
            "cluster": cluster, "environment": "cloud",
            "task": {"type": role, "index": index}})}
        for role, index in tasks])
    summary = json.loads(said[0])
    assert (summary["steps"], summary["workers"]) == (50, 3)


def test_the_ssh_script_trains_on_three_hosts_and_reports(cli):
    skip_when_sanitized()  # the training takes long
    ssh = cli.folder / "ssh"  # without the options that a plain ssh is given
    ssh.write_text("#!/bin/sh\n"
                   "while case $1 in -*) ;; *) false ;; esac; do shift; done\n"
                   f"exec {fake_ssh(cli.folder)} \"$@\"\n")
    ssh.chmod(0o755)
    environment = {**cli.env, "PACELINE": PROGRAM,
                   "PATH": f"{cli.folder}:{cli.env['PATH']}"}
    done = subprocess.run([EXAMPLES / "ssh/three_hosts.sh", *HOSTS], text=True,
                          cwd=cli.folder, env=environment, capture_output=True)
    assert done.returncode == 0, done
    summary = json.loads((cli.folder / "runs/three/summary.json").read_text())
    assert summary["workers"] == 3
    assert "</html>" in (cli.folder / "three.html").read_text()


def test_the_systemd_unit_has_no_mistakes(cli):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    unit = EXAMPLES / "systemd/paceline-page.service"
    copy = cli.folder / unit.name
    copy.write_text(unit.read_text().replace("=paceline ", f"={PROGRAM} "))
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", copy], text=True,
        env={**cli.env, "XDG_RUNTIME_DIR": str(cli.folder)},
        capture_output=True)
    assert (done.returncode, done.stderr) == (0, ""), done
