#!/usr/bin/env python3
"""Write events.tfevents as TensorBoard's own protocol buffers have it.

usage: make_events.py FILE      (needs tensorboard)

tests/unit/proto/test_event.c writes the same events and compares the bytes.
"""
import struct
import sys

from tensorboard.compat.proto import event_pb2, graph_pb2, summary_pb2
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.summary.writer.record_writer import masked_crc32c

TIME = 1763200000.25


def buckets(values):
    """Limits and counts of positive values: four buckets to a doubling."""
    def edges(value):
        bits = struct.unpack("<I", struct.pack("<f", value))[0] >> 21
        return [struct.unpack("<f", struct.pack("<I", b << 21))[0]
                for b in (bits, bits + 1)]
    low, high = edges(min(values))[0], edges(max(values))[1]
    limits = [low]
    while limits[-1] < high:
        limits.append(edges(limits[-1])[1])
    counts = [0.0] * len(limits)
    for value in values:
        counts[limits.index(edges(value)[1])] += 1
    return limits, counts


def hparams(tag, **content):
    summary = summary_pb2.Summary()
    value = summary.value.add(tag=tag)
    value.tensor.dtype = 1
    value.tensor.tensor_shape.dim.add()
    value.metadata.plugin_data.plugin_name = "hparams"
    value.metadata.plugin_data.content = plugin_data_pb2.HParamsPluginData(
        **content).SerializeToString(deterministic=True)
    return event_pb2.Event(wall_time=TIME, summary=summary)


def graph():
    graph = graph_pb2.GraphDef()
    for name, op, device, inputs, sizes, dtype in (
            ("x", "input", "/job:worker/task:0", [], [-1, 28], 1),
            ("labels", "input", "/job:worker/task:0", [], [-1], 3),
            ("w", "parameter", "/job:ps/task:1", [], [10, 28], 1),
            ("y", "inner", "/job:worker/task:0", ["x", "w"], [-1, 10], 1)):
        node = graph.node.add(name=name, op=op, device=device, input=inputs)
        node.attr["T"].type = dtype
        shape = node.attr["_output_shapes"].list.shape.add()
        for size in sizes:
            shape.dim.add(size=size)
    graph.versions.producer = 27
    return event_pb2.Event(
        wall_time=TIME,
        graph_def=graph.SerializeToString(deterministic=True))


def events():
    yield event_pb2.Event(wall_time=TIME, file_version="brain.Event:2")
    yield event_pb2.Event(wall_time=TIME, step=500, session_log={"status": 1})
    summary = summary_pb2.Summary()
    summary.value.add(tag="loss", simple_value=0.5)
    yield event_pb2.Event(wall_time=TIME, step=501, summary=summary)
    values = [1.0, 1.5, 1.5, 3.0]
    limits, counts = buckets(values)
    summary = summary_pb2.Summary()
    summary.value.add(tag="weights/w", histo={
        "min": 1.0, "max": 3.0, "num": 4.0, "sum": 7.0, "sum_squares": 14.5,
        "bucket_limit": limits, "bucket": counts})
    yield event_pb2.Event(wall_time=TIME, step=502, summary=summary)
    yield graph()
    start = plugin_data_pb2.SessionStartInfo(start_time_secs=TIME)
    start.hparams["batch"].number_value = 100
    start.hparams["mode"].string_value = "sync"
    yield hparams("_hparams_/session_start_info", session_start_info=start)
    yield hparams("_hparams_/session_end_info", session_end_info={
        "status": 1, "end_time_secs": TIME})


with open(sys.argv[1], "wb") as file:
    for event in events():
        data = event.SerializeToString(deterministic=True)
        head = struct.pack("<Q", len(data))
        file.write(head + struct.pack("<I", masked_crc32c(head)) + data
                   + struct.pack("<I", masked_crc32c(data)))
