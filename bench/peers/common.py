"""Shared by the peer scripts: data, timed windows, one line of JSON."""
import argparse
import gzip
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np  # noqa: E402

WARM_UP_S = 1.0


def arguments(description):
    """The flags every peer script has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--data", required=True,
                        help="folder of the four MNIST files, plain or .gz")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser


def read_idx(folder, name):
    """One IDX file as an array of bytes."""
    plain = os.path.join(folder, name)
    if os.path.exists(plain):
        with open(plain, "rb") as file:
            content = file.read()
    else:
        with gzip.open(plain + ".gz") as file:
            content = file.read()
    rank = content[3]
    shape = [int.from_bytes(content[4 + 4 * i:8 + 4 * i], "big")
             for i in range(rank)]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load(folder, split):
    """(images [n, 784] as float32 in 0 .. 1, labels as int64)"""
    images = read_idx(folder, f"{split}-images-idx3-ubyte")
    labels = read_idx(folder, f"{split}-labels-idx1-ubyte")
    images = images.reshape(len(images), -1)
    images = (images / np.float32(255)).astype(np.float32)
    return images, labels.astype(np.int64)


def load_train(folder):
    return load(folder, "train")


def load_shuffled(folder):
    """load_train() in a random order, the same in every run."""
    images, labels = load_train(folder)
    order = np.random.RandomState(1).permutation(len(images))
    return images[order], labels[order]


class Rows:
    """Consecutive batches, from the first again at the end."""

    def __init__(self, count, batch):
        self.count, self.batch, self.at = count, batch, 0

    def next(self):
        first = self.at
        self.at += self.batch
        if self.at + self.batch > self.count:
            self.at = 0
        return slice(first, first + self.batch)


def tensorflow(threads):
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return tf


def windows(call, seconds, count, steps_per_call=1):
    """Steps per second in each of `count` windows, after a warm-up.  `call`
    makes steps_per_call training steps, done when it returns."""
    begin, calls = time.perf_counter(), 0
    while calls < 3 or time.perf_counter() - begin < WARM_UP_S:
        call()
        calls += 1
    begin = time.perf_counter()
    call()
    once = max(time.perf_counter() - begin, 1e-7)
    chunk = max(1, int(0.02 / once))  # read the clock every 20 ms only
    rates = []
    for _ in range(count):
        begin, calls, spent = time.perf_counter(), 0, 0
        while spent < seconds:
            for _ in range(chunk):
                call()
            calls += chunk
            spent = time.perf_counter() - begin
        rates.append(calls * steps_per_call / spent)
    return rates


def add_windows(parser):
    """The flags of a script that measures speed."""
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--windows", type=int, default=3)


def emit(**fields):
    """The result, as the last line of the output."""
    print(json.dumps(fields), flush=True)


def emit_speed(options, rates, version):
    emit(steps_per_s=statistics.median(rates), windows=rates, version=version,
         batch=options.batch)
