"""docs/guide.md over a network of three hosts with a real sshd."""

import json

from guide import follow
from test_slow_machines import HOSTS, network, ok, ssh, start

__all__ = ["network", "ssh"]  # fixtures


def test_guide_works_on_three_hosts(cli, network, ssh):  # noqa: F811
    addresses = [network.address(host) for host in range(HOSTS)]
    follow(cli, addresses, ssh,
           lambda *words: ok(cli, start(cli, network, 0, *words)))
    run = cli.folder / "runs/three"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["workers"] == 3
    assert (run / "log/worker-2.log").exists()
