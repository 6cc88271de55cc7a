#!/usr/bin/env python3
"""The Python package and the readers of a user's own data, alternating
with the command line and with common libraries: scikit-learn, pyarrow, polars,
Pillow.

usage: PYTHON bench/peers/own_data.py [--only sparse,dense,...] [--rounds N]

PYTHON has NumPy, SciPy, scikit-learn, pyarrow, polars and Pillow.  Each round
runs every variant once; a ratio is of one round.  All files are cached.

sparse   an epoch of logistic regression on CSR of --rows x --rows, 39 non-zeros
         an example: the package, the command line, SGDClassifier; and AUC
dense    softmax and lenet on images: NumPy arrays against an IDX file
npy      training from a float32 .npy against the uint8 IDX of the same images
memory   the peak memory of a process that trains from --gigabytes of CSR and of
         a mapped .npy, over the data
parquet  a Parquet file of --gigabytes: Data.parquet over pyarrow's read_table
start    seconds from `import paceline` to the first step
starts   1,000 trainings that end, are interrupted or fail, alone and as jobs of
         threads: the memory, files and threads still held
csv      a table of numbers: seconds of a start over polars and pyarrow
images   a folder of PNG files: likewise over Pillow in a process for each core
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NONZEROS = 39
QUIET = {"eval_every": "never", "checkpoint_every": "never",
         "record_every": "never", "monitor_every": 0}
GIGA = 1e9


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--only", default=",".join(PARTS), help="parts, with commas between")
    add("--rounds", type=int, default=5, help="[5]")
    add("--rows", type=int, default=1_000_000, help="sparse examples [10^6]")
    add("--gigabytes", type=float, default=2, help="[2]; parquet: half of it")
    add("--images", type=int, default=20_000, help="dense examples [20000]")
    add("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


# --- what the parts share -------------------------------------------------


def seconds_of(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def flags_of(options):
    words = []
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}"]
        words += [] if value is True else [str(value)]
    return words


def command_line(options, folder, model, **flags):
    """Train by the command line; its summary."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    done = subprocess.run(
        [options.paceline, "train", model, *flags_of({**QUIET, **flags}),
         "--run", run, "--quiet", "--json"],
        check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(options, ways):
    """One result per round of each variant: {name: [values]}."""
    found = {name: [] for name in ways}
    for number in range(options.rounds):
        names = list(ways)
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(ways[name]())
        print(f"round {number + 1} of {options.rounds}, load "
              f"{os.getloadavg()[0]:.1f}", file=sys.stderr)
    return found


def ratios(over, under):
    """Ratio of two variants in the same rounds: median (least-most)."""
    each = [a / b for a, b in zip(over, under)]
    return (f"{statistics.median(each):.3f} "
            f"({min(each):.3f}-{max(each):.3f})")


def median(values):
    return statistics.median(values)


def row(part, what, figure, goal=""):
    print(f"| {part} | {what} | {figure} | {goal} |", flush=True)


def child(options, what, *words):
    """A process of its own, whose last line is JSON."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", ",".join([what, *map(str, words)]),
         "--gigabytes", str(options.gigabytes)],
        check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


# --- sparse ---------------------------------------------------------------


def clicks(rows, seed):
    """CSR rows and labels that a logistic model made; frequent ids are few."""
    from scipy.sparse import csr_matrix
    rng = np.random.default_rng(seed)
    ids = rng.random((rows, NONZEROS), np.float32)
    ids = (ids ** 3 * rows).astype(np.int64)
    weights = np.random.default_rng(0).normal(size=rows).astype("f") * 0.4
    chance = 1 / (1 + np.exp(-weights[ids].sum(axis=1)))
    labels = (rng.random(rows, np.float32) < chance).astype(np.int32)
    matrix = csr_matrix(
        (np.ones(ids.size, np.float32), ids.ravel(),
         np.arange(0, ids.size + 1, NONZEROS)), shape=(rows, rows))
    return matrix, labels


def write_libsvm(path, matrix, labels):
    ids = matrix.indices.reshape(-1, NONZEROS)
    with open(path, "w") as file:
        for label, row_ids in zip(labels.tolist(), ids.tolist()):
            file.write(f"{label} {' '.join(f'{i}:1' for i in row_ids)}\n")


def peer_epochs(train, test, epochs):
    """Seconds and AUC of each epoch of SGDClassifier."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.metrics import roc_auc_score
    model, found = SGDClassifier(loss="log_loss", alpha=1e-6), []
    for _ in range(epochs):
        spent = seconds_of(
            lambda: model.partial_fit(*train, classes=[0, 1]))
        auc = roc_auc_score(test[1], model.decision_function(test[0]))
        found.append((spent, auc))
    return found


def sparse(options, folder):
    import paceline
    train = clicks(options.rows, 1)
    few = np.random.default_rng(2).permutation(options.rows)[:50_000]
    held = clicks(options.rows, 3)
    test = (held[0][few], held[1][few])
    del held
    write_libsvm(folder / "text", *train)
    subprocess.run([options.paceline, "data", "convert", f"libsvm:{folder}/text",
                    f"cache:{folder}/cache", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    data = paceline.Data.csr(*train)
    flags = dict(batch=1000, optimizer="adagrad", lr=0.1, epochs=2)

    def ours(**more):
        run = paceline.train("sparse", data, **QUIET, **{**flags, **more})
        return run.summary["seconds"] / run.summary["epochs"]

    def command():
        found = command_line(options, folder, "sparse",
                             data=f"cache:{folder}/cache",
                             features=options.rows, **flags)
        return found["seconds"] / found["epochs"]

    def auc(**more):
        run = paceline.train("sparse", data, **QUIET, **more)
        return run.summary["seconds"], run.evaluate(test)["auc"]

    found = in_turns(options, {
        "package": ours,
        "hogwild": lambda: ours(hogwild=True, optimizer="sgd", lr=0.03),
        "command": command,
        "peer": lambda: peer_epochs(train, test, 1)[0][0]})
    for name, label in (("package", "batch 1000"), ("hogwild", "hogwild")):
        row("sparse", f"epoch of SGDClassifier over ours, {label}",
            ratios(found["peer"], found[name]), ">= 3")
    row("sparse", "package over command line",
        ratios(found["package"], found["command"]), "<= 1.03")
    curve, spent = peer_epochs(train, test, 5), 0
    for number, (seconds, value) in enumerate(curve, 1):
        spent += seconds
        row("sparse", f"SGDClassifier, {number} epochs",
            f"AUC {value:.4f} after {spent:.1f} s")
    for label, more in (
            ("batch 100", dict(batch=100, optimizer="adagrad", lr=0.3)),
            ("hogwild", dict(hogwild=True, lr=0.03))):
        for epochs in (1, 2):
            seconds, value = auc(epochs=epochs, **more)
            row("sparse", f"package, {label}, {epochs} epochs",
                f"AUC {value:.4f} after {seconds:.1f} s")


# --- dense ----------------------------------------------------------------


def pictures(options, folder):
    """Images that can be learnt, as arrays and as IDX files."""
    subprocess.run([options.paceline, "data", "digits", "--out", folder / "idx"],
                   check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import common
    images = common.read_idx(folder / "idx", "train-images-idx3-ubyte")
    labels = common.read_idx(folder / "idx", "train-labels-idx1-ubyte")
    return images.copy(), labels.copy()


def dense(options, folder):
    import paceline
    images, labels = pictures(options, folder)
    for model, flags in (("softmax", dict(batch=100, epochs=40)),
                         ("lenet", dict(batch=32, epochs=1))):
        found = in_turns(options, {
            "array": lambda: paceline.train(
                model, (images, labels), **QUIET, **flags).summary["seconds"],
            "command": lambda: command_line(
                options, folder, model, data=f"mnist:{folder}/idx",
                **flags)["seconds"]})
        row("dense", f"{model}: arrays over command line",
            ratios(found["array"], found["command"]), "<= 1.03")


def npy(options, folder):
    images, labels = pictures(options, folder)
    np.save(folder / "x.npy", images.astype(np.float32) / np.float32(255))
    np.save(folder / "y.npy", labels)
    for model, flags in (("softmax", dict(batch=100, epochs=20)),
                         ("lenet", dict(batch=32, epochs=1))):
        flags = dict(flags, test_data=f"mnist:{folder}/idx", eval_every="1ep")
        sources = {"npy": f"npy:{folder}/x.npy,{folder}/y.npy",
                   "idx": f"mnist:{folder}/idx"}
        results = {name: [] for name in sources}

        def run(name):
            results[name].append(command_line(
                options, folder, model, data=sources[name], **flags))
            return results[name][-1]["examples_per_s"]

        found = in_turns(options, {n: (lambda n=n: run(n)) for n in sources})
        row("npy", f"{model}: speed from float32 .npy over uint8 IDX",
            ratios(found["npy"], found["idx"]), "0.9-1.1")
        row("npy", f"{model}: test accuracy, .npy and IDX", " and ".join(
            f"{results[n][-1]['test_accuracy']:.4f}" for n in sources), "equal")


# --- memory, parquet, start -----------------------------------------------


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child_memory(options, kind, folder):
    """Train on `gigabytes`; the bytes of the data, and the peak memory."""
    import paceline
    count = int(options.gigabytes * GIGA)
    if kind == "csr":
        rows = count // (8 * NONZEROS + 4)
        indptr = np.arange(0, rows * NONZEROS + 1, NONZEROS, dtype=np.int32)
        ids = np.empty(rows * NONZEROS, np.int32)
        step = 1 << 20  # in parts, so that the data is the peak
        for first in range(0, len(ids), step):
            part = ids[first:first + step]
            part[:] = np.random.default_rng(first).integers(
                1_000_000, size=len(part), dtype=np.int32)
        values = np.ones(len(ids), np.float32)
        from scipy.sparse import csr_matrix
        x = csr_matrix((values, ids, indptr), shape=(rows, 1_000_000), copy=False)
        size = indptr.nbytes + x.indices.nbytes + x.data.nbytes
        del ids, values
        y, model, flags = np.arange(rows) % 2, "sparse", {"optimizer": "sgd"}
    else:
        x = np.load(f"{folder}/large.npy", mmap_mode="r")
        size, y = x.nbytes, np.arange(len(x)) % 10
        model, flags = "softmax", {}
    y = y.astype(np.int32)
    before = peak_bytes()
    paceline.train(model, (x, y), epochs=1, batch=1000, lr=0.01, **QUIET, **flags)
    print(json.dumps({"data": size, "before": before, "peak": peak_bytes()}))


def memory(options, folder):
    rows = int(options.gigabytes * GIGA) // (4 * 784)
    out = np.lib.format.open_memmap(folder / "large.npy", "w+", np.float32,
                                    (rows, 784))
    noise = np.random.default_rng(1).random((1000, 784), np.float32)
    for first in range(0, rows, 1000):
        out[first:first + 1000] = noise[:rows - first]
    out.flush()
    del out
    for kind in ("csr", "npy"):
        found = child(options, "memory", kind, folder)
        row("memory", f"{kind}: peak over data ({found['data'] / GIGA:.2f} GB; "
            f"{found['before'] / GIGA:.2f} GB before training)",
            f"{found['peak'] / found['data']:.3f}", "<= 1.1")


def parquet(options, folder):
    import paceline
    import pyarrow
    from pyarrow import parquet as files
    columns = 100
    rows = int(options.gigabytes / 2 * GIGA) // (4 * columns)
    rng = np.random.default_rng(1)
    table = {f"x{i}": rng.random(rows, np.float32) for i in range(columns)}
    table["label"] = np.arange(rows) % 10
    path = folder / "table.parquet"
    files.write_table(pyarrow.table(table), path, compression="none",
                      use_dictionary=False)
    del table

    def train():
        data = paceline.Data.parquet(path, "label")
        paceline.train("softmax", data, steps=10, **QUIET)

    found = in_turns(options, {
        "read": lambda: seconds_of(lambda: files.read_table(path)),
        "data": lambda: seconds_of(train)})
    row("parquet", f"{path.stat().st_size / GIGA:.2f} GB into training "
        f"({median(found['data']):.2f} s) over read_table "
        f"({median(found['read']):.2f} s)",
        ratios(found["data"], found["read"]), "<= 1.2")


def child_start(_options):
    begin = time.perf_counter()
    import paceline
    imported = time.perf_counter() - begin
    first = []

    def watch(progress):
        if progress.step > 0 and not first:
            first.append(time.perf_counter() - begin)
            return True

    x = np.random.default_rng(1).random((10_000, 784), np.float32)
    y = np.arange(10_000) % 10
    paceline.train("softmax", (x, y), epochs=1000, callbacks=[watch])
    print(json.dumps({"import": imported, "first": first[0]}))


def start(options, _folder):
    found = in_turns(options, {"start": lambda: child(options, "start")})
    row("start", "import paceline to first step [s], NumPy imported",
        f"{median([f['first'] for f in found['start']]):.3f}", "<= 0.3")


def child_starts(_options):
    import paceline
    data = paceline.Data.dense(np.random.default_rng(1).random((200, 8), np.float32),
                               np.arange(200) % 3)
    ways = ({"steps": 3}, {"steps": 10 ** 7, "callbacks": [lambda _: True]},
            {"steps": 3, "batch": 900}, {"steps": 3, "workers": 2},
            {"steps": 3, "workers": 2, "ps": 1})

    def held():
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        return {"MB": pages * resource.getpagesize() / 1e6,
                "files": len(os.listdir("/proc/self/fd")),
                "threads": len(os.listdir("/proc/self/task"))}

    for number in range(1000):
        try:
            paceline.train("softmax", data, progress=False,
                           **{"batch": 20, **ways[number % len(ways)]})
        except paceline.UsageError:
            pass  # a batch larger than the data
        if number == 99:
            first = held()
    print(json.dumps({"first": first, "last": held()}))


def starts(options, _folder):
    found = child(options, "starts")
    for name in found["first"]:
        row("starts", f"{name} after 100 and after 1,000 trainings",
            f"{found['first'][name]:.1f} and {found['last'][name]:.1f}", "equal")


# --- readers --------------------------------------------------------------


def startup(options, folder, source, **flags):
    """Seconds before the first step of training, without caches."""
    shutil.rmtree(folder / "cached", ignore_errors=True)
    return command_line(options, folder, "softmax", data=source, steps=1,
                        cache=folder / "cached", **flags)["startup_seconds"]


def csv(options, folder):
    import polars
    from pyarrow import csv as arrow
    path, columns = folder / "table.csv", 100
    rng = np.random.default_rng(1)
    with open(path, "w") as file:
        file.write(",".join(f"x{i}" for i in range(columns)) + ",label\n")
        for _ in range(options.images // 20):
            part = rng.normal(size=(100, columns)).round(6)
            for numbers in part.tolist():
                file.write(",".join(map(str, numbers)) + ",1\n")
        file.write(",".join(["0.5"] * columns) + ",0\n")

    def matrix_of(table):
        return table.drop("label").cast(polars.Float32).to_numpy()

    found = in_turns(options, {
        "ours": lambda: startup(options, folder, f"csv:{path}"),
        "polars": lambda: seconds_of(lambda: matrix_of(polars.read_csv(path))),
        "pyarrow": lambda: seconds_of(
            lambda: matrix_of(polars.from_arrow(arrow.read_csv(path))))})
    for peer in ("polars", "pyarrow"):
        row("csv", f"{path.stat().st_size / 1e6:.0f} MB: {peer} "
            f"({median(found[peer]):.2f} s) over ours "
            f"({median(found['ours']):.2f} s)",
            ratios(found[peer], found["ours"]), ">= 1")


def decode(paths):
    from PIL import Image
    return np.stack([np.asarray(Image.open(path)) for path in paths])


def by_pillow(paths, cores):
    """All images as one array, decoded by a process for each core."""
    parts = [paths[i::cores * 4] for i in range(cores * 4)]
    with concurrent.futures.ProcessPoolExecutor(cores) as pool:
        return np.concatenate(list(pool.map(decode, parts)))


def images(options, folder):
    from PIL import Image
    rng = np.random.default_rng(1)
    low = rng.integers(256, size=(64, 8, 8, 3), dtype=np.uint8)
    paths = []
    for number in range(options.images):
        path = folder / "png" / str(number % 10) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(low[number % 64]).resize((64, 64), 2)
        picture.save(path)
        paths.append(path)
    cores = len(os.sched_getaffinity(0))
    found = in_turns(options, {
        "ours": lambda: startup(options, folder, f"images:{folder}/png"),
        "peer": lambda: seconds_of(lambda: by_pillow(paths, cores))})
    row("images", f"{len(paths)} PNG of 64 x 64: Pillow in {cores} processes "
        f"({median(found['peer']):.2f} s) over ours "
        f"({median(found['ours']):.2f} s)",
        ratios(found["peer"], found["ours"]), ">= 1")


PARTS = {part.__name__: part for part in (
    sparse, dense, npy, memory, parquet, start, starts, csv, images)}


def main():
    options = parse_arguments()
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("PACELINE_LIBRARY",
                          str(options.paceline.parent / "libpaceline.so.0"))
    if options.child:
        what, *words = options.child.split(",")
        {"memory": child_memory, "start": child_start,
         "starts": child_starts}[what](options, *words)
        return
    print("| part | what | figure | goal |\n|---|---|--:|--:|", flush=True)
    for name in options.only.split(","):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-own-"))
        try:
            PARTS[name](options, folder)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
