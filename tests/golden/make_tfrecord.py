#!/usr/bin/env python3
"""Make tests/golden/tensorflow.tfrecord{,.gz} with the real TensorFlow.

usage: make_tfrecord.py FOLDER      needs the package tensorflow

Five examples; tests/unit/data/test_tfrecord.c knows what is in them.
"""
import pathlib
import sys

import tensorflow as tf


def ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


EXAMPLES = [
    {"label": ints(1), "index": ints(3, 70000, 33762577),
     "value": floats(0.5, 1.0, -2.25)},
    {"label": ints(0), "index": ints(0), "value": floats(1.0)},
    {"label": floats(1.0), "index": ints(5, 6)},
    {"label": ints(0), "index": ints(), "value": floats()},
    {"label": ints(1), "index": ints(2**40),
     "value": floats(3.0), "extra": tf.train.Feature(
         bytes_list=tf.train.BytesList(value=[b"x" * 200]))},
]

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for name, packing in [("tensorflow.tfrecord", ""),
                          ("tensorflow.tfrecord.gz", "GZIP")]:
        with tf.io.TFRecordWriter(str(folder / name), packing) as out:
            for each in EXAMPLES:
                out.write(tf.train.Example(features=tf.train.Features(
                    feature=each)).SerializeToString(deterministic=True))
