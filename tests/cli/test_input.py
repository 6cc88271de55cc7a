"""Bad input: one sentence that names it, the right exit status, no trace."""

import gzip
import shutil
import struct

import pytest

from conftest import SMALL

USAGE = {
    "no_model": (["train"], "train MODEL"),
    "flag_for_model": (["train", "--batch", "5"], "train MODEL"),
    "model": (["train", "sofmax"], ["sofmax", "did you mean softmax"]),
    "far_model": (["train", "transformer"], ["transformer", "models"]),
    "command": (["trian"], ["trian", "did you mean train"]),
    "far_command": (["launch-rocket"], ["launch-rocket", "--help"]),
    "flag": (["train", "softmax", "--bacth", "5"],
             ["--bacth", "did you mean --batch"]),
    "flag_with_value": (["train", "softmax", "--bacth=5"],
                        ["--bacth;", "did you mean --batch"]),
    "far_flag": (["train", "softmax", "--xyzzy"], "--xyzzy"),
    "argument": (["train", "softmax", "lenet"], "lenet"),
    "source": (["train", "softmax", "--data", "digit"],
               ["digit", "did you mean 'digits'"]),
    "far_source": (["train", "softmax", "--data", "imagenet"],
                   ["imagenet", "mnist:DIR"]),
    "source_without_folder": (["train", "softmax", "--data", "mnist"],
                              ["mnist", "mnist:DIR"]),
    "source_with_folder": (["train", "softmax", "--data", "digits:x"],
                           "digits:x"),
    "test_source": (["train", "softmax", *SMALL, "--test-data", "mnits:x"],
                    "mnits"),
    "no_value": (["train", "softmax", "--batch"], "--batch"),
    "flag_as_value": (["train", "softmax", "--batch", "--json"], "--batch"),
    "empty_run": (["train", "softmax", *SMALL, "--run", ""], "--run"),
    "empty_cache": (["train", "softmax", *SMALL, "--cache="], "--cache"),
    "value_of_flag": (["train", "softmax", "--json=1"], "--json"),
    "batch_0": (["train", "softmax", "--batch", "0"], ["--batch", '"0"']),
    "batch_minus": (["train", "softmax", "--batch", "-5"],
                    ["--batch", '"-5"']),
    "batch_text": (["train", "softmax", "--batch", "ten"],
                   ["--batch", '"ten"']),
    "batch_huge": (["train", "softmax", "--batch", "99999999999999999999"],
                   "--batch"),
    "batch_too_large": (["train", "softmax", *SMALL, "--batch", "2001"],
                        ["2000 examples", "batch 2001"]),
    "micro_batches_too_many": (["train", "softmax", *SMALL,
                                "--micro-batches", "21"],
                               ["2000 examples", "21 micro-batches"]),
    "steps_0": (["train", "softmax", "--steps", "0"], "--steps"),
    "epochs_0": (["train", "softmax", "--epochs", "0"], "--epochs"),
    "lr_0": (["train", "softmax", "--lr", "0"], "--lr"),
    "lr_text": (["train", "softmax", "--lr", "fast"], ["--lr", "fast"]),
    "lr_nan": (["train", "softmax", "--lr", "nan"], "--lr"),
    "lr_comma": (["train", "softmax", "--lr", "0,1"], ["--lr", "0,1"]),
    "seed": (["train", "softmax", "--seed", "-1"], "--seed"),
    "optimizer": (["train", "softmax", "--optimizer", "adamax"],
                  ["--optimizer", "adamax", "momentum"]),
    "nesterov": (["train", "softmax", "--nesterov"],
                 ["--nesterov", "momentum"]),
    "rmsprop_momentum": (["train", "softmax", "--optimizer", "rmsprop",
                          "--momentum", "0.5"],
                         ["--momentum", "--optimizer momentum"]),
    "schedule": (["train", "softmax", "--schedule", "linear"],
                 ["--schedule", "linear", "cosine"]),
    "step_for_ever": (["train", "softmax", "--schedule", "step"],
                      ["--schedule step", "--decay-steps"]),
    "exponential_for_ever": (["train", "softmax", "--schedule", "exponential",
                              "--decay-steps", "0"],
                             ["--schedule exponential", "--decay-steps"]),
    "decay_steps_of_nothing": (["train", "softmax", "--decay-steps", "10"],
                               ["--decay-steps", "--schedule"]),
    "decay_of_nothing": (["train", "softmax", "--decay", "0.5"],
                         ["--decay", "--schedule"]),
    "decay_of_cosine": (["train", "softmax", "--schedule", "cosine",
                         "--decay", "0.5"], ["--decay", "--schedule"]),
    "decay_0": (["train", "softmax", "--schedule", "step", "--decay-steps",
                 "5", "--decay", "0"], "--decay"),
    "init": (["train", "softmax", "--init", "random"], ["--init", "random"]),
    "init_number": (["train", "softmax", "--init", "normal:x"], "--init"),
    "eval_every": (["train", "softmax", "--eval-every", "5m"],
                   ["--eval-every", "5m"]),
    "checkpoint_every": (["train", "softmax", "--checkpoint-every", "0"],
                         "--checkpoint-every"),
    "keep_0": (["train", "softmax", "--keep", "0"], "--keep"),
    "threads_0": (["train", "softmax", "--threads", "0"], "--threads"),
    "kernels": (["train", "softmax", "--kernels", "sse"],
                ["--kernels", "sse"]),
    "eval_nothing": (["eval"], "eval RUN"),
    "eval_two": (["eval", "a", "b"], "eval RUN"),
    "eval_flag": (["eval", "a", "--dta", "x"], ["--dta", "--data"]),
    "data_nothing": (["data"], "digits --out DIR"),
    "data_other": (["data", "cats", "--out", "x"], "digits --out DIR"),
    "data_no_out": (["data", "digits"], "--out"),
    "data_empty_out": (["data", "digits", "--out", ""], "--out"),
    "models_unknown": (["models", "sofmax"], "softmax"),
    "docs_nothing": (["docs"], "docs man"),
    "docs_other": (["docs", "html"], "docs man"),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_is_refused(cli, name):
    args, says = USAGE[name]
    cli.refused(2, *args, says=says)


def test_no_command_says_what_to_try_first(cli):
    result = cli.run()
    assert result.code == 2 and result.out == ""
    assert "Try first:\n  paceline demo" in result.err


def test_names_that_cannot_be_written_down_are_refused(cli):
    process = cli.start("train", "softmax", *SMALL, "--run=\udcff")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 2 and b"--run" in err and b"UTF-8" in err
    assert list(cli.folder.iterdir()) == []


def idx(shape, data, kind=8):
    return struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape),
                       *shape) + bytes(data)


def folder_of(path, count=200, labels=None, side=28):
    """IDX files of both splits."""
    path.mkdir(parents=True)
    labels = bytes(i % 10 for i in range(count)) if labels is None else labels
    for split in "train", "t10k":
        images = bytes((i * 7) % 256 for i in range(count * side * side))
        (path / f"{split}-images-idx3-ubyte").write_bytes(
            idx((count, side, side), images))
        (path / f"{split}-labels-idx1-ubyte").write_bytes(
            idx((len(labels),), labels))
    return path


IMAGES = "train-images-idx3-ubyte"
LABELS = "train-labels-idx1-ubyte"


def rewrite(name, change):
    def damage(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))
    return damage


def pack(name, change=lambda b: b):
    """Replace a file by its gzip, damaged."""
    def damage(folder):
        path = folder / name
        packed = change(gzip.compress(path.read_bytes()))
        path.unlink()
        path.with_name(name + ".gz").write_bytes(packed)
    return damage


def count_is(n):
    return lambda b: b[:4] + struct.pack(">I", n) + b[8:]


# A change to a good folder, and the words that the message must have.
DAMAGES = {
    "truncated": (rewrite(IMAGES, lambda b: b[:-1]), [IMAGES, "truncated"]),
    "header_only": (rewrite(IMAGES, lambda b: b[:16]), [IMAGES, "truncated"]),
    "half_header": (rewrite(IMAGES, lambda b: b[:6]), [IMAGES, "truncated"]),
    "empty": (rewrite(IMAGES, lambda b: b""), [IMAGES, "truncated"]),
    "oversized": (rewrite(IMAGES, lambda b: b + b"x"), [IMAGES, "trailing"]),
    "huge_count": (rewrite(IMAGES, count_is(0xFFFFFFFF)), [IMAGES]),
    "zero_count": (rewrite(LABELS, count_is(0)), [LABELS]),
    "not_idx": (rewrite(IMAGES, lambda b: b"PNG" + b), [IMAGES, "not an IDX"]),
    "float_type": (rewrite(IMAGES, lambda b: b[:2] + b"\x0d" + b[3:]),
                   [IMAGES, "truncated"]),
    "gzip_truncated": (pack(IMAGES, lambda b: b[:-20]),
                       [IMAGES + ".gz", "truncated"]),
    "gzip_broken": (pack(IMAGES, lambda b: b[:50] + bytes(50) + b[100:]),
                    [IMAGES + ".gz", "gzip"]),
    "gzip_trailing": (pack(IMAGES, lambda b: b + b"junk"),
                      [IMAGES + ".gz", "trailing"]),
    "fewer_labels": (rewrite(LABELS, lambda b: idx((199,), b[8:-1])),
                     [IMAGES, LABELS, "200", "199"]),
    "labels_for_images": (rewrite(IMAGES, lambda b: idx((200,), bytes(200))),
                          [IMAGES, "dimension"]),
    "no_labels": (lambda f: (f / LABELS).unlink(), [LABELS]),
    "no_images": (lambda f: (f / IMAGES).unlink(), [IMAGES]),
    "folder_for_file": (lambda f: ((f / IMAGES).unlink(),
                                   (f / IMAGES).mkdir()), [IMAGES]),
}


@pytest.mark.parametrize("kind", ["mnist", "idx"])
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_data_is_named(cli, tmp_path, kind, name):
    folder = folder_of(tmp_path / "data")
    damage, says = DAMAGES[name]
    damage(folder)
    cli.refused(1, "train", "softmax", "--data", f"{kind}:{folder}",
                "--steps", "1", says=says)
    assert list(cli.folder.iterdir()) == []


def test_missing_data_folder_is_named(cli):
    for kind in "mnist", "idx":
        cli.refused(1, "train", "softmax", "--data", f"{kind}:no/such",
                    says="no/such")
    assert list(cli.folder.iterdir()) == []


def test_label_out_of_range_is_named(cli, tmp_path):
    labels = bytearray(i % 10 for i in range(200))
    labels[123] = 10
    folder = folder_of(tmp_path / "data", labels=bytes(labels))
    cli.refused(1, "train", "softmax", "--data", f"mnist:{folder}", "--steps",
                "1", says=[LABELS, "123", "10"])
    # An IDX folder may have as many classes as it likes.
    cli.train("--data", f"idx:{folder}", "--steps", "1")


def test_mnist_must_be_28_by_28(cli, tmp_path):
    folder = folder_of(tmp_path / "data", side=20)
    cli.refused(1, "train", "softmax", "--data", f"mnist:{folder}",
                says=[IMAGES, "20", "28"])
    cli.train("--data", f"idx:{folder}", "--steps", "1")


def test_data_of_two_kinds_is_refused(cli, tmp_path):
    small = folder_of(tmp_path / "small", side=20)
    cli.refused(2, "train", "softmax", "--data", f"idx:{small}",
                "--test-data", "digits", says=["20", "28"])
    # Both may be read from folders of one name.
    other = folder_of(tmp_path / "other" / "small", side=9)
    cli.refused(2, "train", "softmax", "--data", f"idx:{small}",
                "--test-data", f"idx:{other}",
                says=[f"training examples (idx:{small}) are [20, 20]",
                      f"test examples (idx:{other}) are [9, 9]"])
    one = folder_of(tmp_path / "mixed", side=8)
    shutil.copy(other / IMAGES.replace("train", "t10k"),
                one / IMAGES.replace("train", "t10k"))
    cli.refused(2, "train", "softmax", "--data", f"idx:{one}",
                says=[f"training examples (idx:{one}) are [8, 8]",
                      f"test examples (idx:{one}) are [9, 9]"])


def test_gzip_and_plain_train_the_same(cli, tmp_path):
    folder = folder_of(tmp_path / "data")
    flags = ["--data", f"idx:{folder}", "--steps", "5"]
    plain = cli.train(*flags)["parameters_sha256"]
    for name in IMAGES, LABELS:
        pack(name)(folder)
    assert cli.train(*flags)["parameters_sha256"] == plain


def test_run_that_exists_is_refused(cli):
    cli.train(*SMALL, "--run", "r")
    before = (cli.folder / "r/summary.json").read_bytes()
    cli.refused(2, "train", "softmax", *SMALL, "--run", "r",
                says=["r ", "--resume"])
    assert (cli.folder / "r/summary.json").read_bytes() == before


def test_run_where_a_file_is_in_the_way_fails(cli):
    (cli.folder / "file").write_text("mine")
    cli.refused(1, "train", "softmax", *SMALL, "--quiet", "--run", "file",
                says=["file", "a file of that name"])
    cli.refused(1, "train", "softmax", *SMALL, "--quiet", "--run", "file/r",
                says="file")
    assert (cli.folder / "file").read_text() == "mine"
    (cli.folder / "runs").write_text("mine")
    cli.refused(1, "train", "softmax", *SMALL, "--quiet", says="runs")
    cli.refused(1, "data", "digits", "--out", "file/x", says="file")


def test_eval_of_a_folder_without_a_run_is_named(cli):
    cli.refused(1, "eval", "no/such", says=["no/such", "not a run folder"])
    (cli.folder / "empty").mkdir()
    cli.refused(1, "eval", "empty", says=["empty", "not a run folder"])
    cli.train(*SMALL, "--run", "r")
    cli.refused(1, "eval", "r", "--data", "mnist:no/such", says="no/such")
    cli.refused(2, "eval", "r", "--data", "cats", says="cats")


def test_eval_without_a_checkpoint_says_so(cli):
    cli.train(*SMALL, "--run", "r")
    shutil.rmtree(cli.folder / "r/checkpoints")
    cli.refused(1, "eval", "r", says=["r/checkpoints"])


def test_eval_on_data_of_another_shape_is_refused(cli, tmp_path):
    cli.train(*SMALL, "--run", "r")
    small = folder_of(tmp_path / "small", side=20)
    cli.refused(2, "eval", "r", "--data", f"idx:{small}",
                says=["training examples are [28, 28]",
                      f"test examples (idx:{small}) are [20, 20]"])
