"""Jobs of several processes: what is refused, and how a job is started."""

import json
import os
import subprocess

import pytest

from conftest import SMALL, program

ONE = {"cluster": {"ps": ["localhost:1"], "worker": ["localhost:2"]}}


def refused(cli, says, *args):
    cli.refused(2, "train", "softmax", *args, says=says)


@pytest.mark.parametrize("args, says", [
    ("--workers 2 --evaluator", "--evaluator needs a parameter server"),
    ("--workers 2 --strategy ps", "--strategy ps needs a parameter server"),
    ("--workers 2 --mode async", "--mode needs a parameter server"),
    ("--workers 2 --engine smoke", "--engine: expected"),
    ("--ps 1 --staleness 2", "--staleness needs --mode ssp"),
    ("--role ps", "--role needs --cluster FILE or TF_CONFIG"),
    ("--ps 1 --workers 3 --global-batch 100",
     "--global-batch 100 cannot be divided by 3 workers"),
    ("--ps 1 --workers 70000", "--workers: expected a whole number"),
    ("--ps 1 --workers 2 --data synthetic --examples 150",
     "150 examples"),
    ("--ps 1 --role worker --control 0", "--control"),
    ("--ps 1 --role worker --control 77", "--control 77: not a socket"),
])
def test_invalid_settings_are_refused(cli, args, says):
    refused(cli, says, *args.split())


def test_a_cluster_file_that_is_wrong_is_named(cli):
    file = cli.folder / "c.json"
    for text, says in [
            ("{", "c.json"),
            ('{"cluster": {"wroker": ["a:1"]}}', 'found "wroker"'),
            ('{"cluster": {"worker": ["a:1", "a:1"]}}', "the same address"),
            (json.dumps(ONE), "--cluster needs --role"),
    ]:
        file.write_text(text)
        refused(cli, says, "--cluster", "c.json")


def test_tf_config_that_is_wrong_is_named(cli):
    for config, says in [
            ("[]", "TF_CONFIG: expected an object"),
            (json.dumps({**ONE, "task": {"type": "boss"}}),
             "TF_CONFIG: task: type"),
            (json.dumps({**ONE, "task": {"type": "ps", "index": 1}}),
             "TF_CONFIG: task: there is no ps 1"),
    ]:
        cli.env["TF_CONFIG"] = config
        refused(cli, says)


def test_tf_config_without_cluster_or_task_is_a_local_run(cli):
    """As TensorFlow has it."""
    task = {"type": "worker", "index": 0}
    expected = cli.train(*SMALL, "--run", "plain")["parameters_sha256"]
    for i, (config, what) in enumerate([
            ({}, "cluster"), ({"cluster": {}, "task": task}, "cluster"),
            ({"task": task}, "cluster"), (ONE, "task"),
            ({**ONE, "task": {}}, "task")]):
        cli.env["TF_CONFIG"] = json.dumps(config)
        result = cli.ok("train", "softmax", "--json", *SMALL, "--run", f"r{i}")
        assert f"TF_CONFIG has no {what}: this is a local run" in result.err
        assert result.json["strategy"] == "single"
        assert result.json["parameters_sha256"] == expected
    cli.env["TF_CONFIG"] = "{}"
    refused(cli, "--role needs --cluster FILE or TF_CONFIG", "--role", "ps")
    cli.env["TF_CONFIG"] = json.dumps(ONE)
    refused(cli, "there is no ps 7", "--role", "ps", "--index", "7")


def test_flags_beat_tf_config(cli):
    cli.env["TF_CONFIG"] = "nonsense"
    cli.train(*SMALL, "--strategy", "single", "--run", "a")
    cli.train(*SMALL, "--workers", "1", "--run", "b")


def test_tf_config_of_one_is_a_training_of_one(cli):
    cli.env["TF_CONFIG"] = json.dumps(
        {"cluster": {"chief": ["localhost:1"]},
         "task": {"type": "chief", "index": 0}})
    assert cli.train(*SMALL, "--run", "a")["strategy"] == "single"


def test_an_entry_of_one_is_a_training_of_one(cli):
    (cli.folder / "c.json").write_text(
        json.dumps({"single": {"worker": ["localhost:2222"]}, **ONE}))
    cli.train(*SMALL, "--cluster", "c.json", "--deploy", "single", "--role",
              "worker", "--index", "0", "--run", "a")


def test_global_batch_of_one_worker_is_its_batch(cli):
    one = cli.train(*SMALL, "--batch", "40", "--run", "a")
    other = cli.train(*SMALL, "--global-batch", "40", "--run", "b")
    assert other["batch"] == 40
    assert one["parameters_sha256"] == other["parameters_sha256"]


def test_a_job_holds_its_run_folder(cli):
    """A folder with a run in it is refused before a task is started."""
    cli.train(*SMALL, "--run", "a")
    refused(cli, "already holds a run", *SMALL, "--ps", "1", "--run", "a")


def test_a_host_name_that_means_loopback_is_refused(cli):
    """As Debian writes it: the host's own name is 127.0.1.1.  The task runs
    with an /etc/hosts of its own."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"],
                                           check=False).returncode != 0:
        pytest.skip("needs a mount namespace of its own")
    (cli.folder / "hosts").write_text("127.0.0.1 localhost\n"
                                      "127.0.1.1 node0\n192.0.2.8 node1\n")
    both = {"cluster": {"ps": ["node0:4711"],
                        "worker": ["node0:4712", "node1:4712"]}}
    (cli.folder / "c.json").write_text(json.dumps(both))
    script = 'mount --bind hosts /etc/hosts && exec "$@"'
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", program(), "train",
         "softmax", "--data", "synthetic", "--cluster", "c.json", "--role",
         "ps", "--index", "0", "--insecure"], cwd=cli.folder,
        capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2, result
    assert "on this host node0 means 127.0.1.1, where worker 1 at " \
        "node1:4712 cannot reach it" in result.stderr
    assert "/etc/hosts" in result.stderr
