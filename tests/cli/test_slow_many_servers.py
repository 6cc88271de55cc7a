"""Jobs of more servers than one usually has."""

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never", "--steps", "20"]


def test_128_servers_give_the_bits_of_one_process(cli):
    summary = cli.train(*DATA, "--workers", "2", "--ps", "128", "--transport",
                        "tcp", "--run", "many")
    alone = cli.train(*DATA, "--micro-batches", "2", "--run", "alone")
    assert [row["steps"] for row in summary["per_worker"]] == [20, 20]
    assert summary["parameters_sha256"] == alone["parameters_sha256"]


def test_more_servers_than_there_may_be_are_refused(cli):
    for flag in ("--ps", "--workers"):
        result = cli.run("train", "softmax", *DATA, "--workers", "2", "--ps", "2",
                         flag, "1025", "--run", "x")
        assert result.code == 2, result
        assert flag in result.err and "1024" in result.err, result
