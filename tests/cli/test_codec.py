"""Codecs of gradients: the bits of each, what a run keeps of it, and where one
is refused."""

import pathlib
import shutil

import pytest

from jobs import interrupted, task, wait_for_checkpoint, wait_for_progress

ALONE = ["--data", "synthetic", "--examples", "600", "--threads", "1",
         "--eval-every", "never", "--seed", "3"]
RING = ["--strategy", "allreduce", "--engine", "ring"]
# Dense layers on uint8 pixels, as one part; a convolutional model as one part,
# and as several; with clipping.
NETS = {
    "softmax": ["softmax", "--batch", "4", "--steps", "12"],
    "lenet": ["lenet", "--batch", "16", "--steps", "4"],
    "lenet parts": ["lenet", "--batch", "50", "--steps", "3"],
    "lenet clipped": ["lenet", "--batch", "50", "--steps", "3", "--clip",
                      "0.5"],
}


# In the large world, where oneDNN computes products over all rows at once.
LARGE = ["mlp", "--hidden", "2801,1031", "--batch", "32", "--steps", "2"]


def run(cli, model, *flags):
    return cli.ok("train", *model, "--quiet", "--json", *ALONE, *flags).json


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("net", NETS)
def test_factors_have_the_bits_of_one_process(cli, net, workers):
    alone = run(cli, NETS[net], "--micro-batches", str(workers))
    summary = run(cli, NETS[net], *RING, "--workers", str(workers), "--codec",
                  "factors")
    assert summary["parameters_sha256"] == alone["parameters_sha256"]
    codec = summary["codec"]
    assert codec["name"] == "factors" and codec["changes_bits"] is False
    assert codec["seconds"] > 0 and codec["layers"]
    for layer in codec["layers"]:
        assert layer["sent_bytes"] < layer["plain_bytes"]
    assert summary["deterministic"] is True


@pytest.mark.parametrize("workers,flags", [
    (2, []), (2, ["--threads", "2"]), (3, ["--threads", "2"]),
    (3, ["--clip", "0.5"]),
    # So many rows that oneDNN adds parts of a product to a sum.
    (3, ["--batch", "448", "--examples", "1400"]),
    pytest.param(3, ["--kernels", "avx2"], marks=pytest.mark.skipif(
        "avx2" not in pathlib.Path("/proc/cpuinfo").read_text(),
        reason="this processor has no AVX2")),
])
def test_large_factors_have_the_bits_of_one_process(cli, workers, flags):
    """Also of ranks that add before and after their own gradient."""
    alone = run(cli, LARGE, *flags, "--micro-batches", str(workers))
    summary = run(cli, LARGE, *flags, *RING, "--workers", str(workers),
                  "--codec", "factors")
    assert summary["parameters_sha256"] == alone["parameters_sha256"]
    assert "dense2/weights" in {
        row["layer"] for row in summary["codec"]["layers"]}


def test_factors_have_the_bits_of_parameter_servers(cli):
    factors = run(cli, NETS["lenet"], *RING, "--workers", "3", "--codec",
                  "factors")
    served = run(cli, NETS["lenet"], "--workers", "3", "--ps", "2")
    assert factors["parameters_sha256"] == served["parameters_sha256"]


def test_factors_send_less(cli):
    """Counted where all goes over TCP."""
    sent = {}
    for codec in "plain", "factors":
        summary = run(cli, NETS["lenet"], *RING, "--workers", "2", "--codec",
                      codec, "--transport", "tcp", "--bucket-bytes", "1000000")
        sent[codec] = summary["bytes_sent"]
        last = summary
    saved = sum(row["plain_bytes"] - row["sent_bytes"]
                for row in last["codec"]["layers"])
    # The two links carry as much; frames and marks beside it are small.
    assert sent["plain"] - sent["factors"] == pytest.approx(
        2 * last["steps"] * saved, rel=0.03)


def test_auto_is_plain_on_one_host(cli):
    plain = run(cli, NETS["lenet"], *RING, "--workers", "3", "--codec",
                "plain")
    auto = run(cli, NETS["lenet"], *RING, "--workers", "3")
    assert auto["codec"]["name"] == plain["codec"]["name"] == "plain"
    assert auto["parameters_sha256"] == plain["parameters_sha256"]


@pytest.mark.parametrize("codec", ["factors", "bf16", "topk"])
def test_a_resumed_run_has_the_same_bits(cli, codec):
    flags = [*RING, "--workers", "3", "--codec", codec]
    whole = run(cli, NETS["lenet"], *flags, "--run", "whole")
    run(cli, [*NETS["lenet"][:-1], "2"], *flags, "--run", "half")
    half = run(cli, NETS["lenet"], *flags, "--run", "half", "--resume")
    assert half["resumed_step"] == 2
    assert half["parameters_sha256"] == whole["parameters_sha256"]


TOPK = [*RING, "--codec", "topk", "--topk-share", "0.05", "--optimizer",
        "momentum", "--lr", "0.01"]


def test_residuals_of_workers_are_in_every_checkpoint(cli):
    """Residual and velocity of each worker: also where a checkpoint is written
    by the way, a run is interrupted in mid-epoch, or a later checkpoint is
    thrown away (held H1, H2)."""
    flags = [*TOPK, "--workers", "3", "--checkpoint-every", "3"]
    model = NETS["lenet"][:-1]
    whole = run(cli, [*model, "11"], *flags, "--run", "whole")
    run(cli, [*model, "8"], *flags, "--run", "half")
    newest = cli.folder / "half" / "checkpoints" / "step-0000000008"
    assert newest.is_dir()
    shutil.rmtree(newest)
    half = run(cli, [*model, "11"], *flags, "--run", "half", "--resume")
    # A checkpoint is left out while the one before is being written.
    assert half["resumed_step"] < 8
    assert half["parameters_sha256"] == whole["parameters_sha256"]
    assert half["deterministic"] is True
    # They are the workers', not the model's.
    cli.ok("eval", "half", "--data", "synthetic")
    other = cli.run("train", *model, "20", "--quiet", *ALONE, *TOPK,
                    "--workers", "2", "--run", "half", "--resume")
    assert other.code == 2
    assert "the residuals of another number of workers" in other.err


@pytest.mark.parametrize("codec", ["bf16", "topk"])
@pytest.mark.parametrize("job", [[*RING, "--workers", "3"],
                                 ["--workers", "2", "--ps", "2"]])
def test_a_lossy_codec_is_repeatable_and_says_so(cli, job, codec):
    plain = run(cli, NETS["lenet"], *job)
    lossy = [run(cli, NETS["lenet"], *job, "--codec", codec)
             for _ in range(2)]
    hashes = {summary["parameters_sha256"] for summary in lossy}
    assert len(hashes) == 1
    assert lossy[0]["deterministic"] is True
    assert plain["parameters_sha256"] not in hashes
    use = lossy[0]["codec"]
    assert use["name"] == codec and use["changes_bits"] is True
    assert use["layers"] and use["seconds"] > 0
    assert lossy[0]["train_loss"] == pytest.approx(plain["train_loss"],
                                                   rel=0.05)


def test_bf16_halves_the_traffic_of_servers(cli):
    """Counted where all goes over TCP; the chief's last look is exact."""
    job = ["lenet", "--batch", "16", "--steps", "24", "--workers", "2", "--ps",
           "2", "--transport", "tcp"]
    plain, half = (run(cli, job, "--codec", codec)
                   for codec in ("plain", "bf16"))
    assert half["bytes_sent"] == pytest.approx(plain["bytes_sent"] / 2,
                                               rel=0.05)
    assert half["bytes_received"] == pytest.approx(
        plain["bytes_received"] / 2, rel=0.05)


def test_a_resumed_job_with_servers_has_the_same_bits(cli):
    """Servers keep what workers see rounded."""
    flags = ["--workers", "2", "--ps", "2", "--codec", "bf16"]
    whole = run(cli, NETS["lenet"], *flags, "--run", "whole")
    run(cli, [*NETS["lenet"][:-1], "2"], *flags, "--run", "half")
    half = run(cli, NETS["lenet"], *flags, "--run", "half", "--resume")
    assert half["resumed_step"] == 2
    assert half["parameters_sha256"] == whole["parameters_sha256"]


def test_topk_sends_what_the_summary_says(cli):
    """Counted where all goes over TCP, with frames beside it."""
    sent = {}
    for share in "0.02", "0.2":
        summary = run(cli, NETS["lenet"], *RING, "--workers", "2", "--codec",
                      "topk", "--topk-share", share, "--transport", "tcp",
                      "--bucket-bytes", "1000000")
        sent[share] = summary["bytes_sent"]
        sent[share] -= 2 * summary["steps"] * sum(
            row["sent_bytes"] for row in summary["codec"]["layers"])
    assert sent["0.02"] == pytest.approx(sent["0.2"], rel=0.03)


@pytest.mark.parametrize("flags,says", [
    (["--codec", "factors", "--workers", "2", "--ps", "1"],
     "--codec factors: parameter servers add gradients, not factors"),
    (["--codec", "factors", "--workers", "2", "--engine", "mpi"],
     "--codec factors: MPI adds float32; add --engine ring"),
    (["--codec", "bf16", "--workers", "2", "--engine", "mpi"],
     "--codec bf16: MPI adds float32; add --engine ring"),
    (["--codec", "factors", *RING, "--workers", "2", "--micro-batches", "2"],
     "--codec factors: with --micro-batches a gradient is the mean"),
    (["--codec", "bf16", *RING, "--workers", "2", "--local-steps", "2"],
     "--codec bf16: with --local-steps no gradient is sent"),
    (["--codec", "topk", *RING, "--workers", "2", "--optimizer", "momentum",
      "--nesterov"], "--codec topk: each worker keeps a momentum"),
    (["--topk-share", "0.1", *RING, "--workers", "2"],
     "--topk-share needs --codec topk"),
    (["--codec", "bf16"], "--codec needs a job of several processes"),
])
def test_a_codec_without_effect_is_refused(cli, flags, says):
    cli.refused(2, "train", "softmax", *flags, says=says)


def test_a_run_keeps_its_codec(cli):
    flags = [*RING, "--workers", "2", "--run", "a"]
    run(cli, NETS["lenet"], *flags, "--codec", "factors")
    cli.refused(2, "train", *NETS["lenet"], *flags, "--resume", "--codec",
                "bf16", says="--codec bf16: the run was started with")


@pytest.mark.parametrize("job", [[*RING], ["--ps", "2"]])
def test_a_lost_worker_loses_its_topk_residual(cli, job):
    """The summary reports it (held H3)."""
    train = cli.start("train", "softmax", *ALONE, *job, "--workers", "2",
                      "--codec", "topk", "--checkpoint-every", "20",
                      "--quiet", "--json", "--run", "a", "--steps", "1000000")
    wait_for_checkpoint(cli, train)
    task(train, "worker", 1).kill()
    wait_for_progress(cli, train)
    summary = interrupted(cli, train).json
    assert summary["restarts"] >= 1
    assert summary["deterministic"] is False
