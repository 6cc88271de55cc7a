"""`doctor`: properties of hosts, and of the links between them."""

import json
import socket

import pytest

from hosts import HOSTS, fake_ssh


def checks(found):
    return {(line["host"], line["check"]): line for line in found["lines"]}


def test_this_host_alone(cli):
    found = cli.ok("doctor", "--json").json
    names = {line["check"] for line in found["lines"]}
    assert {"version", "cores", "memory", "disk", "shared memory",
            "huge pages", "open files", "keys", "tasks"} == names
    assert found["ok"] and found["ways"] == []


def test_table_has_a_verdict_for_each_line(cli):
    lines = cli.ok("doctor").out.splitlines()
    rows = [line for line in lines[1:] if not line.startswith(" ")]
    assert len(rows) == 9
    assert all(row.split()[-1] for row in rows)
    assert any(" ok " in row for row in rows)


def test_wrong_key_file_is_bad_and_says_what_to_do(cli):
    cli.ok("keys", "-o", "job.key")
    (cli.folder / "job.key").chmod(0o644)
    env = dict(cli.env, PACELINE_KEYS="job.key")
    result = cli.run("doctor", env=env)
    assert result.code == 1
    assert "chmod 600 job.key" in result.out, result
    assert "a job would fail here" in result.err


def test_hosts_and_the_links_between_them(cli):
    found = cli.ok("doctor", "--json", "--seconds", "0.2", "--ssh",
                   fake_ssh(cli.folder), "--hosts", ",".join(HOSTS)).json
    ways = {(way["from"], way["to"]) for way in found["ways"]}
    assert ways == {(a, b) for a in HOSTS for b in HOSTS if a != b}
    for way in found["ways"]:
        assert way["round_trip_us"] > 0 and way["bytes_per_s"] > 0
    for host in HOSTS:
        assert checks(found)[(host, "clock")]["verdict"] == "ok"
        assert checks(found)[(host, "version")]["verdict"] == "ok"


def test_port_of_the_cluster_that_is_taken_is_bad(cli):
    with socket.socket() as held:
        held.bind(("127.0.0.2", 0))
        held.listen()
        port = held.getsockname()[1]
        cluster = {"ps": [f"127.0.0.2:{port}"], "worker": ["127.0.0.1:29417"]}
        (cli.folder / "c.json").write_text(json.dumps(
            {"other": {"worker": ["127.0.0.3:29417"]}, "ours": cluster}))
        words = ["doctor", "--seconds", "0.2", "--ssh", fake_ssh(cli.folder),
                 "--cluster", "c.json"]
        cli.refused(2, *words, says="choose one with --deploy: other, ours")
        result = cli.run(*words, "--deploy", "ours")
    assert result.code == 1
    assert f"listen at 127.0.0.2:{port}: Address already in use" \
        in result.out, result


@pytest.mark.parametrize("words, says", [
    (["here"], "--hosts a,b,c"),
    (["--hosts", "a", "--cluster", "c"], "not both"),
    (["--copy"], "--copy needs --hosts"),
])
def test_wrong_command_is_one_sentence(cli, words, says):
    cli.refused(2, "doctor", *words, says=says)
