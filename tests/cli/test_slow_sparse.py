"""Sparse files of other programs are read here, and ours there.

The libraries are those of `tools/setup.sh long`; PL_TENSORFLOW and PL_SKLEARN
may name other Python programs that have them.
"""

import os
import subprocess

import pytest

from conftest import ROOT

EXAMPLES = """
import sys, random
def rows():
    rng = random.Random(4)
    for i in range(500):
        ids = sorted(rng.sample(range(1000000), rng.randint(0, 40)))
        yield i % 2, ids, [rng.choice([1.0, 0.5, -3.25]) for _ in ids]
"""


def python_with(library, variable):
    python = os.environ.get(variable, ROOT / "build/venv-long/bin/python")
    done = subprocess.run([python, "-c", f"import {library}"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python


def run(python, code, *args):
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    done = subprocess.run([python, "-c", EXAMPLES + code, *map(str, args)],
                          capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


WRITE_TF = """
import tensorflow as tf
F = tf.train.Feature
with tf.io.TFRecordWriter(sys.argv[1], sys.argv[2]) as out:
    for label, ids, values in rows():
        out.write(tf.train.Example(features=tf.train.Features(feature={
            "label": F(int64_list=tf.train.Int64List(value=[label])),
            "index": F(int64_list=tf.train.Int64List(value=ids)),
            "value": F(float_list=tf.train.FloatList(value=values)),
        })).SerializeToString())
"""
READ_TF = """
import tensorflow as tf
count = 0
for raw, (label, ids, values) in zip(tf.data.TFRecordDataset(sys.argv[1]),
                                     rows(), strict=True):
    got = tf.train.Example.FromString(raw.numpy()).features.feature
    assert list(got["label"].int64_list.value) == [label]
    assert list(got["index"].int64_list.value) == ids
    found = list(got["value"].float_list.value)
    assert (found or [1.0] * len(ids)) == values, (found, values)
    count += 1
print(count)
"""
WRITE_SVM = """
with open(sys.argv[1], "w") as out:
    for label, ids, values in rows():
        print(label, *(f"{i}:{v:g}" for i, v in zip(ids, values)), file=out)
"""
READ_SVM = """
from sklearn.datasets import load_svmlight_file
x, y = load_svmlight_file(sys.argv[1], zero_based=True, n_features=1000000)
for r, (label, ids, values) in enumerate(rows()):
    assert y[r] == label
    row = x[r].tocoo()
    assert list(row.col) == ids and list(row.data) == values
print(x.shape[0])
"""
DUMP_SVM = """
import numpy as np, scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
data = list(rows())
x = sp.lil_matrix((len(data), 1000000))
for r, (_, ids, values) in enumerate(data):
    for i, v in zip(ids, values):
        x[r, i] = v
dump_svmlight_file(x.tocsr(), [d[0] for d in data], sys.argv[1],
                   zero_based=True, comment="by scikit-learn")
"""


@pytest.mark.parametrize("packing", ["", "GZIP"])
def test_files_are_exchanged_with_tensorflow(cli, tmp_path, packing):
    python = python_with("tensorflow", "PL_TENSORFLOW")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    svm, plain = tmp_path / "svm", tmp_path / "plain"
    run(python, WRITE_TF, theirs, packing)
    run(python, WRITE_SVM, plain)
    cli.ok("data", "convert", f"tfrecord:{theirs}", f"libsvm:{svm}")
    assert svm.read_text() == plain.read_text()
    cli.ok("data", "convert", f"libsvm:{svm}", f"tfrecord:{ours}")
    assert run(python, READ_TF, ours) == "500\n"


def test_files_are_exchanged_with_scikit_learn(cli, tmp_path):
    python = python_with("sklearn", "PL_SKLEARN")
    theirs, cache = tmp_path / "theirs", tmp_path / "cache"
    ours, plain = tmp_path / "ours", tmp_path / "plain"
    run(python, DUMP_SVM, theirs)
    run(python, WRITE_SVM, plain)
    cli.ok("data", "convert", f"libsvm:{theirs}", f"cache:{cache}")
    cli.ok("data", "convert", f"cache:{cache}", f"libsvm:{ours}")
    assert ours.read_text() == plain.read_text()
    assert run(python, READ_SVM, ours) == "500\n"


PREDICT = """
import json, struct
import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
with open(sys.argv[1], "rb") as file:
    size, = struct.unpack("<Q", file.read(8))
    tensors = json.loads(file.read(size))
    data = file.read()
def tensor(name):
    begin, end = tensors[name]["data_offsets"]
    return np.frombuffer(data[begin:end], "<f4").astype(np.float64)
model = LogisticRegression()
model.classes_ = np.array([0, 1])
model.coef_ = tensor("sparse/weights").reshape(1, -1)
model.intercept_ = tensor("sparse/bias")
x, _ = load_svmlight_file(sys.argv[2], zero_based=True,
                          n_features=model.coef_.shape[1])
for p in model.predict_proba(x)[:, 1]:
    print(repr(float(p)))
"""


def test_scikit_learn_predicts_the_same(cli, tmp_path):
    """The weights of a checkpoint mean there what they mean here."""
    python = python_with("sklearn", "PL_SKLEARN")
    svm = tmp_path / "svm"
    run(python, WRITE_SVM, svm)
    cli.ok("train", "sparse", "--data", f"libsvm:{svm}", "--features",
           "1000000", "--epochs", "20", "--batch", "50", "--run", "r")
    checkpoint, = cli.folder.glob("r/checkpoints/step-*/*.safetensors")
    theirs = run(python, PREDICT, checkpoint, svm).split()
    ours = [line.split()[1] for line in
            cli.ok("predict", "r", f"libsvm:{svm}").out.splitlines()]
    assert len(ours) == len(theirs) == 500
    assert max(map(float, ours)) > 0.9 and min(map(float, ours)) < 0.1
    for our, their in zip(ours, theirs):
        assert abs(float(our) - float(their)) < 1e-5
