"""The same command gives the same parameters, bit for bit."""

import pytest

from conftest import SMALL

WAYS = {
    "sgd": [],
    "momentum": ["--optimizer", "momentum"],
    "nesterov": ["--optimizer", "momentum", "--nesterov"],
    "adam": ["--optimizer", "adam", "--lr", "0.01"],
    "adagrad": ["--optimizer", "adagrad"],
    "adagrad_from_0": ["--optimizer", "adagrad", "--initial-accumulator", "0"],
    "rmsprop": ["--optimizer", "rmsprop", "--lr", "0.01"],
    "rmsprop_rho": ["--optimizer", "rmsprop", "--lr", "0.01", "--rho", "0.5"],
    "weight_decay": ["--weight-decay", "0.01"],
    "clip": ["--clip", "0.5"],
    "micro_batches": ["--micro-batches", "3"],
    "sum": ["--micro-batches", "3", "--aggregate", "sum", "--lr", "0.03"],
    "warmup": ["--warmup", "20"],
    "step": ["--schedule", "step", "--decay-steps", "20"],
    "exponential": ["--schedule", "exponential", "--decay-steps", "20",
                    "--decay", "0.5"],
    "cosine": ["--schedule", "cosine"],
    "warm_cosine": ["--schedule", "cosine", "--warmup", "20"],
    "odd_batch": ["--batch", "37"],
    "batch_1": ["--batch", "1"],
    "all": ["--optimizer", "adam", "--weight-decay", "0.001", "--clip", "1",
            "--micro-batches", "2", "--warmup", "10", "--batch", "33",
            "--init", "glorot"],
}
KERNELS = ["reference", "portable", "avx2", "avx512"]


def sha(cli, *flags):
    return cli.train(*SMALL, *flags)["parameters_sha256"]


@pytest.mark.parametrize("way", WAYS)
def test_bits_do_not_depend_on_threads(cli, way):
    hashes = {n: sha(cli, *WAYS[way], "--threads", n) for n in (1, 2, 3)}
    assert len(set(hashes.values())) == 1, hashes
    assert sha(cli, *WAYS[way]) == hashes[1]


def test_every_way_of_training_gives_its_own_bits(cli):
    hashes = {way: sha(cli, *flags) for way, flags in WAYS.items()}
    assert len(set(hashes.values())) == len(WAYS), hashes


def test_bits_on_digits_do_not_depend_on_threads(cli):
    flags = ["--data", "digits", "--steps", "50"]
    hashes = {cli.train(*flags, "--threads", n)["parameters_sha256"]
              for n in (1, 2, 3)}
    assert len(hashes) == 1


def test_another_seed_gives_other_bits(cli):
    seeds = [sha(cli, "--seed", n) for n in (0, 1, 2)]
    assert len(set(seeds)) == 3
    assert sha(cli) == seeds[1]


def test_the_defaults_are_what_they_say(cli):
    plain = sha(cli)
    for flags in (["--micro-batches", "1"], ["--aggregate", "mean"],
                  ["--aggregate", "sum"], ["--warmup", "0"],
                  ["--clip", "0"], ["--weight-decay", "0"],
                  ["--optimizer", "sgd"], ["--init", "zeros"],
                  ["--batch", "100"], ["--schedule", "constant"]):
        assert sha(cli, *flags) == plain, flags
    for way, flags in (("adagrad", ["--initial-accumulator", "0.1"]),
                       ("adagrad", ["--epsilon", "1e-8"]),
                       ("rmsprop", ["--rho", "0.9"]),
                       ("step", ["--decay", "0.1"]),
                       ("cosine", ["--decay-steps", "0"]),
                       ("cosine", ["--decay-steps", "50"]),
                       ("warm_cosine", ["--decay-steps", "31"])):
        assert sha(cli, *WAYS[way], *flags) == sha(cli, *WAYS[way]), flags


def test_cosine_ends_with_the_epochs(cli):
    flags = [*SMALL[:-2], "--epochs", "2", "--schedule", "cosine"]
    whole = cli.train(*flags)
    assert whole["steps"] == 40
    assert cli.train(*flags, "--decay-steps", "40")["parameters_sha256"] == \
        whole["parameters_sha256"]


def test_tests_checkpoints_and_profiles_change_no_bit(cli):
    plain = sha(cli)
    for flags in (["--eval-every", "7"], ["--eval-every", "never"],
                  ["--eval-batch", "3"], ["--checkpoint-every", "3"],
                  ["--profile"], ["--checkpoint-every", "never"]):
        assert sha(cli, *flags) == plain, flags


@pytest.mark.parametrize("way", ["sgd", "adam", "adagrad", "rmsprop",
                                  "micro_batches"])
def test_each_instruction_set_trains_to_about_the_same_loss(cli, way):
    best = cli.train(*SMALL, *WAYS[way])
    for kernels in KERNELS:
        result = cli.run("train", "softmax", "--quiet", "--json", *SMALL,
                         *WAYS[way], "--kernels", kernels)
        if result.code == 2:  # this processor lacks it
            assert f"--kernels {kernels}" in result.err, result
            continue
        assert result.code == 0, result
        summary = result.json
        assert summary["kernels"] == kernels
        assert summary["test_loss"] == pytest.approx(best["test_loss"],
                                                     rel=1e-2)
        again = cli.train(*SMALL, *WAYS[way], "--kernels", kernels,
                          "--threads", "1")
        assert again["parameters_sha256"] == summary["parameters_sha256"]


def test_two_trainings_at_once_share_an_empty_cache(cli):
    flags = ["train", "softmax", "--steps", "50", "--cache", "shared",
             "--json", "--quiet"]
    started = [cli.start(*flags) for _ in range(3)]
    results = [cli.end(p, *flags) for p in started]
    assert [r.code for r in results] == [0] * 3, results
    assert len({r.json["parameters_sha256"] for r in results}) == 1
    # Also the folder that none of them named.
    assert len({r.json["run"] for r in results}) == 3
    assert cli.train(*flags[2:-2])["parameters_sha256"] == \
        results[0].json["parameters_sha256"]


def test_momentum_0_is_sgd(cli):
    zero = sha(cli, "--optimizer", "momentum", "--momentum", "0")
    assert zero == sha(cli, "--optimizer", "sgd")
    assert zero != sha(cli, "--optimizer", "momentum")
