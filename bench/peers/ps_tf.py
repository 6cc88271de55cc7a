"""TensorFlow's parameter server on loopback: softmax regression on MNIST, or
logistic regression over 33,762,578 sparse features (sparse_lr.py).

One ps and N workers as processes; prints the gradients all workers made a
second, as one line of JSON.  Run by ps.py; needs TensorFlow.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

import sparse_lr
from common import load_shuffled

LEARNING_RATE = 0.5
READY_STEPS = 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--work", choices=("mnist", "sparse"), default="mnist")
    add("--data", help="folder of the MNIST files")
    add("--mode", choices=("sync", "async"), required=True)
    add("--workers", type=int, default=3)
    add("--batch", type=int, default=100)
    add("--seconds", type=float, default=5)
    add("--role", choices=("ps", "worker"), help="what a child is")
    add("--index", type=int, default=0)
    add("--ports", help="of the ps and of the workers")
    add("--folder", help="where the children leave their results")
    return parser.parse_args()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [str(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


def peak_mb(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1000
    return 0.0


def wait_for(paths, children, limit_s=240):
    end = time.monotonic() + limit_s
    while not all(p.exists() for p in paths):
        if time.monotonic() > end or any(c.poll() for c in children):
            sys.exit("a task of TensorFlow ended or took too long")
        time.sleep(0.05)


def launch(a):
    with tempfile.TemporaryDirectory() as folder:
        ports = ",".join(free_ports(1 + a.workers))
        common = [sys.executable, __file__, *sys.argv[1:], "--ports", ports,
                  "--folder", folder, "--role"]
        children = [subprocess.Popen([*common, "ps"],
                                     stderr=subprocess.DEVNULL)]
        children += [subprocess.Popen([*common, "worker", "--index", str(i)],
                                      stderr=subprocess.DEVNULL)
                     for i in range(a.workers)]
        results = [pathlib.Path(folder, f"{i}.json")
                   for i in range(a.workers)]
        try:
            wait_for(results, children)
            rates = [json.loads(r.read_text())["rate"] for r in results]
            peaks = [peak_mb(c.pid) for c in children]
        finally:
            for child in children:
                child.kill()
                child.wait()
    print(json.dumps({"gradients_per_s": sum(rates), "ps_mb": peaks[0],
                      "worker_mb": max(peaks[1:])}))


def sparse_loss(tf):
    x = tf.placeholder(tf.int64, [None, 39])
    y = tf.placeholder(tf.float32, [None])
    weights = tf.Variable(tf.zeros([sparse_lr.FEATURES]))
    bias = tf.Variable(tf.zeros([]))
    rows = tf.nn.embedding_lookup(weights, x)  # gathered on the ps
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=y, logits=tf.reduce_sum(rows, 1) + bias))
    return x, y, loss


def mnist_loss(tf):
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.int64, [None])
    weights = tf.Variable(tf.zeros([784, 10]))
    bias = tf.Variable(tf.zeros([10]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=y, logits=tf.matmul(x, weights) + bias))
    return x, y, loss


def make_graph(tf, a):
    step = tf.train.get_or_create_global_step()
    x, y, loss = sparse_loss(tf) if a.work == "sparse" else mnist_loss(tf)
    optimizer, hooks = tf.train.GradientDescentOptimizer(LEARNING_RATE), []
    if a.mode == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(
            optimizer, replicas_to_aggregate=a.workers,
            total_num_replicas=a.workers)
        hooks = [optimizer.make_session_run_hook(a.index == 0)]
    return x, y, optimizer.minimize(loss, global_step=step), hooks


def measure(a, counter):
    """Count after the warm-up of all, then write the result; the steps
    continue until the process is killed, since a sync worker that stopped would
    stop all."""
    folder = pathlib.Path(a.folder)
    (folder / f"{a.index}.ready").touch()
    while not all((folder / f"{i}.ready").exists() for i in range(a.workers)):
        time.sleep(0.02)
    time.sleep(1)
    begin, before = time.monotonic(), counter[0]
    time.sleep(a.seconds)
    rate = (counter[0] - before) / (time.monotonic() - begin)
    part = folder / f"{a.index}.part"
    part.write_text(json.dumps({"rate": rate}))
    part.rename(folder / f"{a.index}.json")


def be_task(a):
    import tensorflow
    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()
    ports = [f"127.0.0.1:{p}" for p in a.ports.split(",")]
    cluster = tf.train.ClusterSpec({"ps": ports[:1], "worker": ports[1:]})
    server = tf.train.Server(cluster, job_name=a.role, task_index=a.index)
    if a.role == "ps":
        server.join()
    examples, labels = (sparse_lr.make_data() if a.work == "sparse"
                        else load_shuffled(a.data))
    with tf.device(tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{a.index}", cluster=cluster)):
        x, y, train, hooks = make_graph(tf, a)
    # A worker that finds the chief not ready sleeps 30 s: wait for it here.
    while a.index > 0 and not os.path.exists(f"{a.folder}/0.ready"):
        time.sleep(0.02)
    counter = [0]
    with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=a.index == 0, hooks=hooks,
            save_checkpoint_secs=None, save_summaries_steps=None,
            log_step_count_steps=None) as session:
        run = session._tf_sess().run if a.mode == "async" else session.run
        at = a.index * len(examples) // a.workers
        while True:
            if at + a.batch > len(examples):
                at = 0
            rows = slice(at, at + a.batch)
            run(train, {x: examples[rows], y: labels[rows]})
            at += a.batch
            counter[0] += 1
            if counter[0] == READY_STEPS:
                threading.Thread(target=measure, args=(a, counter),
                                 daemon=True).start()


if __name__ == "__main__":
    arguments = parse_arguments()
    be_task(arguments) if arguments.role else launch(arguments)
