"""Dense TFRecords that TensorFlow itself wrote, as its scripts do: raw pixels,
PNG, JPEG and floats (tools/setup.sh long)."""

import os
import subprocess

import numpy as np
import pytest

from conftest import ROOT

PYTHON = os.environ.get("PL_TENSORFLOW", ROOT / "build/venv-long/bin/python")
WRITE = """
import numpy as np
import tensorflow as tf

Feature = tf.train.Feature
data = np.load("made.npz")


def ints(*values):
    return Feature(int64_list=tf.train.Int64List(value=values))


def pixels(value):
    return Feature(bytes_list=tf.train.BytesList(value=[value]))


def write(name, features_of, packing=""):
    with tf.io.TFRecordWriter(name, packing) as out:
        for i, label in enumerate(data["y_train"]):
            out.write(tf.train.Example(features=tf.train.Features(
                feature=features_of(i, int(label)))).SerializeToString())


gray, rgb = data["gray"], data["rgb"]
raw = lambda i, label: {
    "image_raw": pixels(gray[i].tobytes()), "label": ints(label),
    "height": ints(12), "width": ints(10), "depth": ints(1)}
write("raw.tfrecord", raw)
write("raw.tfrecord.gz", raw, "GZIP")
write("png.tfrecord", lambda i, label: {
    "image/encoded": pixels(tf.io.encode_png(rgb[i]).numpy()),
    "image/format": pixels(b"png"), "image/class/label": ints(label),
    "image/height": ints(12), "image/width": ints(10)})
jpeg = [tf.io.encode_jpeg(each, quality=95).numpy() for each in rgb]
write("jpeg.tfrecord", lambda i, label: {
    "image/encoded": pixels(jpeg[i]), "image/class/label": ints(label)})
np.save("decoded.npy", np.stack(
    [tf.io.decode_jpeg(each, dct_method="INTEGER_ACCURATE") for each in jpeg]))
write("floats.tfrecord", lambda i, label: {
    "features": Feature(float_list=tf.train.FloatList(value=data["numbers"][i])),
    "label": ints(label)})
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    random = np.random.default_rng(9)
    labels = np.arange(90) % 3
    gray = random.integers(0, 80, (90, 12, 10)).astype(np.uint8)
    for i, label in enumerate(labels):
        gray[i, 4 * label:4 * label + 4] += 150
    slope = np.linspace(0, 60, 12).astype(np.uint8)[None, :, None, None]
    rgb = np.stack([gray // 2, gray // 3, gray // 4], -1) + slope
    numbers = (gray.reshape(90, -1) / 100 - 1).astype(np.float32)
    np.savez(folder / "made.npz", y_train=labels, gray=gray, rgb=rgb,
             numbers=numbers)
    for name, x in (("gray", gray), ("rgb", rgb.transpose(0, 3, 1, 2)),
                    ("numbers", numbers)):
        np.savez(folder / f"{name}.npz", x_train=x, y_train=labels)
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    done = subprocess.run([PYTHON, "-c", WRITE], cwd=folder, env=env, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


def trained(cli, source, *flags):
    return cli.train("--data", source, "--holdout", "0.2", "--batch", "12",
                     "--steps", "20", *flags)


@pytest.mark.parametrize("records, array, flags", [
    ("raw.tfrecord", "gray", []),
    ("raw.tfrecord.gz", "gray", ["--image-feature", "image_raw"]),
    ("png.tfrecord", "rgb", []),
    ("floats.tfrecord", "numbers", [])])
def test_records_train_as_arrays_do(cli, written, records, array, flags):
    found = trained(cli, f"tfrecord:{written / records}", *flags)
    expected = trained(cli, f"npz:{written / array}.npz")
    assert found["parameters_sha256"] == expected["parameters_sha256"]
    assert found["test_accuracy"] == expected["test_accuracy"]


def test_jpeg_is_decoded_as_tensorflow_does(cli, written):
    cli.ok("data", "convert", f"tfrecord:{written / 'jpeg.tfrecord'}",
           "npz:out.npz")
    with np.load(cli.folder / "out.npz") as found:
        x, y = found["x_train"], found["y_train"]
    expected = np.load(written / "decoded.npy").transpose(0, 3, 1, 2)
    assert x.shape == expected.shape
    assert np.abs(x.astype(int) - expected).max() <= 2
    assert np.array_equal(y, np.arange(90) % 3)
