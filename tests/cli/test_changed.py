"""Data files that are truncated while a training reads them."""

import gzip
import os
import re
import struct

import pytest

from conftest import wait_for

ROWS = 4000


def libsvm(folder):
    path = folder / "data"
    path.write_text("".join(
        f"{i % 2} " + " ".join(f"{j}:{i % 7}.5" for j in range(i % 9, 60, 3))
        + "\n" for i in range(ROWS)))
    return path


def converted(kind):
    def make(cli):
        source = libsvm(cli.folder)
        path = cli.folder / f"data.{kind}"
        cli.ok("data", "convert", f"libsvm:{source}", f"{kind}:{path}")
        return f"{kind}:{path}", path
    return make


def sparse_text(cli):
    path = libsvm(cli.folder)
    return f"libsvm:{path}", path


def dense(cli):
    """4,000 images of ten classes, as IDX files."""
    folder = cli.folder / "idx"
    folder.mkdir()
    for split in "train", "t10k":
        (folder / f"{split}-images-idx3-ubyte").write_bytes(
            struct.pack(">4B3I", 0, 0, 8, 3, ROWS, 28, 28)
            + bytes(range(256)) * (ROWS * 28 * 28 // 256)
            + bytes(ROWS * 28 * 28 % 256))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(
            struct.pack(">4B1I", 0, 0, 8, 1, ROWS)
            + bytes(i % 10 for i in range(ROWS)))
    return f"idx:{folder}", folder / "train-images-idx3-ubyte"


def array(cli):
    source, _ = dense(cli)
    x, y = cli.folder / "x.npy", cli.folder / "y.npy"
    cli.ok("data", "convert", source, f"npy:{x},{y}")
    return f"npy:{x},{y}", x


def archive(cli):
    source, _ = dense(cli)
    path = cli.folder / "data.npz"
    cli.ok("data", "convert", source, f"npz:{path}")
    return f"npz:{path}", path


def images(cli):
    """Decoded images are cached in a file."""
    cli.ok("data", "convert", dense(cli)[0], "images:images")
    cli.env["HOME"] = str(cli.folder / "home")
    (cli.folder / "home").mkdir()
    cli.train("--data", "images:images", "--steps", 1, "--eval-every", "never")
    path, = (path for path in (cli.folder / "home").rglob("*")
             if path.is_file())
    return "images:images", path


@pytest.mark.parametrize("make", [sparse_text, converted("tfrecord"),
                                  converted("cache"), dense, array, archive,
                                  images],
                         ids=["libsvm", "tfrecord", "cache", "idx", "npy",
                              "npz", "images"])
def test_a_truncated_file_ends_the_training_with_a_sentence(cli, make):
    source, path = make(cli)
    sparse = source.startswith(("libsvm", "tfrecord", "cache"))
    model = ["sparse", "--features", 100, "--shuffle-buffer", 500] if sparse \
        else ["softmax"]
    process = cli.start("train", *model, "--data", source, "--steps", 10**9,
                        "--batch", 20, "--run", "run", "--eval-every", "never",
                        "--checkpoint-every", 50, "--quiet")
    try:
        assert wait_for(lambda: list(cli.folder.glob(
            "run/checkpoints/step-*/manifest.json")), "a checkpoint", process)
        os.truncate(path, 100)
        result = cli.end(process)
    finally:
        process.kill()
    assert result.code == 1, result
    last = result.err.splitlines()[-1]
    assert re.search(rf"{re.escape(str(path))} changed while it was read", last)


def test_a_packed_bomb_is_refused(cli):
    path = cli.folder / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(70):
            file.write(b"\n" * 1000000)
    cli.refused(1, "data", "stats", f"libsvm:{path}",
                says=["bomb.gz", "--unpack-ratio"])
    cli.refused(1, "data", "stats", f"libsvm:{path}", "--unpack-ratio", 5000,
                says="no examples")
