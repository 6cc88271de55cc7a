"""A synchronous job of N workers is one process with N micro-batches, bit for
bit, however its parameters are cut and carried."""

import pytest

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--steps", "40", "--threads", "1"]
JOB = ["--workers", "3"]


def single(cli, *flags, run="single"):
    return cli.train(*DATA, "--strategy", "single", "--micro-batches", "3",
                     *flags, "--run", run)


def job(cli, *flags, run):
    return cli.train(*DATA, *JOB, *flags, "--run", run)


def test_servers_and_transports_change_no_bit(cli):
    sha = single(cli)["parameters_sha256"]
    for number, flags in enumerate([
            "--ps 1 --transport tcp", "--ps 1 --transport tcp",
            "--ps 2 --transport tcp", "--ps 1 --transport shm",
            "--ps 2 --transport shm", "--ps 3"]):
        summary = job(cli, *flags.split(), run=f"job{number}")
        assert summary["parameters_sha256"] == sha, flags
        assert summary["deterministic"] is True
        assert (summary["strategy"], summary["mode"]) == ("ps", "sync")
        assert summary["workers"] == 3


@pytest.mark.parametrize("flags", [
    "--optimizer momentum --lr 0.05",
    "--optimizer momentum --nesterov --weight-decay 0.01",
    "--optimizer adam --lr 0.001 --schedule cosine --warmup 10",
    "--optimizer adagrad", "--optimizer rmsprop --lr 0.001",
    "--aggregate sum --lr 0.01",
])
def test_every_optimizer_is_the_same_on_the_server(cli, flags):
    one = single(cli, *flags.split())
    many = job(cli, "--ps", "2", *flags.split(), run="job")
    assert many["parameters_sha256"] == one["parameters_sha256"]
    assert many["examples"] == one["examples"]
    assert many["test_loss"] == one["test_loss"]


def test_clipping_acts_on_each_gradient(cli):
    """One worker's combined gradient is clipped as the single one's is; of
    several workers each clips its own."""
    flags = ["--clip", "0.05", "--lr", "0.5"]
    one = cli.train(*DATA, *flags, "--strategy", "single", "--run", "one")
    free = cli.train(*DATA, "--lr", "0.5", "--run", "free")
    same = cli.train(*DATA, *flags, "--workers", "1", "--ps", "2", "--run",
                     "same")
    assert same["parameters_sha256"] == one["parameters_sha256"]
    assert free["parameters_sha256"] != one["parameters_sha256"]
    many = single(cli, *flags)
    assert job(cli, "--ps", "2", *flags, run="job")["parameters_sha256"] == \
        many["parameters_sha256"]


def test_micro_batches_of_workers(cli):
    """2 workers of 3 micro-batches each: the mean of means is not the mean of
    all, but repeats."""
    flags = [*DATA, "--workers", "2", "--micro-batches", "3", "--ps"]
    shas = {cli.train(*flags, ps, "--run", f"run{ps}")["parameters_sha256"]
            for ps in (1, 2)}
    assert len(shas) == 1


def test_lenet(cli):
    flags = ["train", "lenet", "--quiet", "--json", "--data", "digits",
             "--batch", "16", "--steps", "12", "--threads", "1",
             "--eval-every", "never"]
    one = cli.ok(*flags, "--micro-batches", "3", "--run", "one").json
    for ps, transport in [(1, "tcp"), (2, "shm")]:
        many = cli.ok(*flags, *JOB, "--ps", ps, "--transport", transport,
                      "--run", f"job{ps}").json
        assert many["parameters_sha256"] == one["parameters_sha256"]
