"""Own data: arrays, tables, pictures, records; and docs/data.md as it is."""

import json
import os
import pathlib
import re

import numpy as np
import pytest


STEPS = ["--steps", "40", "--batch", "20"]


def examples(count, seed=0):
    """Pictures of three classes that differ in where they are bright."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, count)
    pictures = random.integers(0, 90, (count, 8, 6)).astype(np.uint8)
    for i, label in enumerate(labels):
        pictures[i, 2 * label:2 * label + 2] += 150
    return pictures, labels


@pytest.fixture
def work(cli):
    x, y = examples(300)
    xt, yt = examples(60, 1)
    os.chdir(cli.folder)
    np.save("x.npy", x)
    np.save("y.npy", y)
    np.save("xt.npy", xt)
    np.save("yt.npy", yt.astype(np.uint8)[:, None])
    np.savez("a.npz", x_train=x, y_train=y, x_test=xt, y_test=yt)
    return cli


TEST = ["--test-data", "npy:xt.npy,yt.npy"]


def test_same_pictures_from_every_source_train_the_same(work):
    """To the same bits, where they are bytes."""
    np.savez_compressed("c.npz", **np.load("a.npz"))
    for target in ["idx:idx", "tfrecord:a.tfrecord", "tfrecord:a.tfrecord.gz",
                   "npz:b.npz", "images:pictures"]:
        work.ok("data", "convert", "npz:a.npz", target)
    expected = work.train("--data", "npz:a.npz", *STEPS)
    assert expected["test_accuracy"] > 0.9
    sources = [["npy:x.npy,y.npy"], ["npz:b.npz"], ["idx:idx"],
               ["idx:idx/train-images-idx3-ubyte,idx/train-labels-idx1-ubyte"],
               ["tfrecord:a.tfrecord"],
               ["tfrecord:a.tfrecord.gz", "--image-feature", "image_raw"]]
    for source in sources:
        found = work.train("--data", *source, *TEST, *STEPS)
        assert found["parameters_sha256"] == expected["parameters_sha256"], \
            source
        assert found["test_accuracy"] == expected["test_accuracy"]
    work.ok("data", "convert", "npz:a.npz", "csv:a.csv")
    work.ok("data", "convert", "csv:a.csv", "images:table", "--example-shape",
            "8,6")
    for path in pathlib.Path("pictures").glob("*/*.png"):
        assert path.read_bytes() == \
            ("table" / path.relative_to("pictures")).read_bytes()
    packed = work.train("--data", "npz:c.npz", *STEPS)
    assert packed["parameters_sha256"] == expected["parameters_sha256"]
    assert work.train("--data", "images:pictures", *TEST,
                      *STEPS)["test_accuracy"] > 0.9


NUMBERS = ["--loss", "squared-error", "--holdout", "0.2", "--batch", "20",
           "--epochs", "6", "--lr", "0.05", "--threads", "1"]


def line(folder):
    """Examples of four numbers, and two numbers that follow from them."""
    os.chdir(folder)  # NumPy looks where it is
    random = np.random.default_rng(5)
    x = random.standard_normal((500, 4)).astype(np.float32)
    y = x @ random.standard_normal((4, 2)) + [1, -1]
    np.save(folder / "x4.npy", x)
    np.save(folder / "y2.npy", y)
    np.save(folder / "y1.npy", y[:, 0])
    np.savetxt(folder / "t.csv", np.column_stack([x, y[:, 0]]), delimiter=",",
               header="a,b,c,d,price", comments="", fmt="%.9g")
    return x, y.astype(np.float32)


def test_numbers_are_predicted(cli):
    _, y = line(cli.folder)
    done = cli.train("--data", "npy:x4.npy,y2.npy", *NUMBERS, "--run", "two",
                     "--workers", "2", "--ps", "1")
    alone = cli.train("--data", "npy:x4.npy,y2.npy", *NUMBERS,
                      "--micro-batches", "2")
    assert alone["parameters_sha256"] == done["parameters_sha256"]
    lines = cli.ok("predict", "two", "npy:x4.npy,y2.npy", "--json").out
    found = np.array([json.loads(line)["prediction"]
                      for line in lines.splitlines()])
    off = (found - y)[400:]
    part = (y - y[400:].mean(axis=0))[400:]
    assert done["test_rmse"] == pytest.approx(
        np.sqrt((off ** 2).mean(axis=0)).mean(), rel=1e-4)
    assert done["test_mae"] == pytest.approx(abs(off).mean(), rel=1e-4)
    assert done["test_r2"] == pytest.approx(
        (1 - (off ** 2).sum(axis=0) / (part ** 2).sum(axis=0)).mean(), rel=1e-4)
    assert done["test_loss"] == pytest.approx((off ** 2).mean(), rel=1e-4)
    assert done["test_r2"] > 0.9 and done["test_accuracy"] is None
    table = cli.ok("predict", "two", "npy:x4.npy", "--csv").out.splitlines()
    assert table[0] == "source,example,number,value"
    assert table[2].startswith("npy:x4.npy,0,2,") and len(table) == 1001
    assert "RMSE" in cli.ok("eval", "two").out
    cli.refused(2, "predict", "two", "npy:x4.npy", "--top", "2")


def test_a_column_of_numbers_is_predicted(cli):
    line(cli.folder)
    table = ["--data", "csv:t.csv", "--label-column", "price"]
    for loss in (NUMBERS, [*NUMBERS, "--loss", "huber", "--huber-delta", "2"]):
        array = cli.train("--data", "npy:x4.npy,y1.npy", *loss)
        found = cli.train(*table, *loss, "--run", "csv" + loss[-1])
        assert found["test_r2"] == pytest.approx(array["test_r2"], abs=1e-4)
    first = cli.ok("predict", "csv2", "csv:t.csv").out.splitlines()[0]
    assert re.fullmatch(r"0 -?\d+\.\d+", first)
    cli.refused(1, "train", "softmax", *table, "--holdout", "0.2")
    cli.refused(2, "train", "softmax", *table, *NUMBERS, "--stop-accuracy", "0.5")
    cli.refused(2, "train", "softmax", "--data", "digits", *NUMBERS)
    cli.refused(2, "train", "softmax", "--data", "npy:x4.npy,y1.npy", "--holdout",
              "0.2")


def test_numbers_are_converted_and_described(cli):
    x, y = line(cli.folder)
    numbers = ["--labels", "numbers"]
    cli.ok("data", "convert", "npy:x4.npy,y2.npy", "npz:two.npz", *numbers)
    with np.load("two.npz") as two:
        assert np.array_equal(two["y_train"], y) and two["y_train"].dtype == "f"
        assert np.array_equal(two["x_train"], x)
    cli.ok("data", "convert", "npy:x4.npy,y1.npy", "csv:one.csv", *numbers)
    cli.ok("data", "convert", "csv:one.csv", "npy:a.npy,b.npy", *numbers)
    assert np.array_equal(np.load("b.npy"), y[:, 0])
    found = cli.ok("data", "stats", "npz:two.npz", *numbers, "--json").json
    assert found["classes"] == [] and len(found["labels"]) == 2
    for column, label in enumerate(found["labels"]):
        assert label["mean"] == pytest.approx(y[:, column].mean(), rel=1e-5)
        assert label["most"] == y[:, column].max()
    text = cli.ok("data", "stats", "csv:one.csv", *numbers).out
    assert re.search(r"^  label +-?\d", text, re.M) and "class" not in text
    for target in "csv:two.csv", "idx:two", "tfrecord:two":
        cli.refused(2, "data", "convert", "npy:x4.npy,y2.npy", target, *numbers,
                    says="npz:FILE")
    for code, *source in ((2, "npy:x4.npy,y1.npy"),
                          (1, "csv:t.csv", "--label-column", "price")):
        cli.refused(code, "data", "stats", *source, says="--labels numbers")
    cli.refused(2, "data", "stats", "digits", *numbers)


def test_top_5_is_that_of_predict(cli):
    done = cli.train("--data", "digits", "--steps", "20", "--batch", "50",
                     "--run", "few")
    cli.ok("data", "convert", "digits", "npz:t.npz", "--split", "test")
    rows = cli.ok("predict", "few", "npz:t.npz", "--top", "5", "--csv").out
    labels = list(np.load(cli.folder / "t.npz").values())[1]
    near = [int(row.split(",")[3]) for row in rows.splitlines()[1:]]
    hits = (np.array(near).reshape(-1, 5) == labels[:, None]).any(axis=1)
    assert done["test_top5_accuracy"] == hits.mean()
    assert done["test_top5_accuracy"] > done["test_accuracy"]


@pytest.mark.parametrize("dtype", ["f4", "f8", ">i2"])
def test_numbers_are_not_scaled_unless_asked(work, dtype):
    """Values are exact in all these types, so scaling agrees with bytes."""
    np.save("n.npy", np.load("x.npy").astype(dtype))
    expected = work.train("--data", "npy:x.npy,y.npy", "--scale", "0.5", *TEST,
                          "--lr", "1e-4", *STEPS)
    found = work.train("--data", "npy:n.npy,y.npy", "--scale", "0.5", *TEST,
                       "--lr", "1e-4", *STEPS)
    assert found["parameters_sha256"] == expected["parameters_sha256"]
    plain = work.train("--data", "npy:n.npy,y.npy", *TEST, "--lr", "1e-4",
                       *STEPS)
    assert plain["parameters_sha256"] != expected["parameters_sha256"]


def test_standardized_as_numpy_does_it(work):
    x = np.load("x.npy").reshape(300, 48).astype("f8")
    np.save("flat.npy", x)
    work.train("--data", "npy:flat.npy,y.npy", "--test-data",
               "npy:flat.npy,y.npy", "--standardize", *STEPS, "--run", "r")
    kept = json.loads(pathlib.Path("r/run.json").read_text())["input"]
    assert np.array(kept["mean"], float) == pytest.approx(x.mean(0), rel=1e-6)
    assert np.array(kept["deviation"], float) == pytest.approx(x.std(0),
                                                               rel=1e-6)
    manifest = next(pathlib.Path("r/checkpoints").glob("*/manifest.json"))
    settings = json.loads(manifest.read_text())["settings"]
    assert json.loads(settings["input"]) == kept

    # What is read by itself is read with the statistics of the training.
    np.save("one.npy", x[:1])
    whole = work.ok("predict", "r", "npy:flat.npy").out.splitlines()
    assert work.ok("predict", "r", "npy:one.npy").out.splitlines() == whole[:1]
    kept["mean"][0] = "7"
    record = json.loads(pathlib.Path("r/run.json").read_text())
    pathlib.Path("r/run.json").write_text(json.dumps(record | {"input": kept}))
    work.refused(2, "eval", "r", says="input")


def test_holdout_is_a_part_of_the_training_data_only(work):
    work.train("--data", "npy:x.npy,y.npy", "--holdout", "0.2", *STEPS, "--run",
               "r")

    def tested(*data):
        return work.ok("eval", "r", *data, "--json").json["examples"]

    assert tested() == 60
    assert tested("--data", "npy:x.npy,y.npy") == 60
    assert tested("--data", "npz:a.npz,x_train,y_train") == 300


def test_several_workers_standardize_the_same(work):
    flags = ["--data", "npz:a.npz", "--standardize", "--steps", "20",
             "--batch", "10"]
    alone = work.train(*flags, "--micro-batches", "2", "--threads", "1")
    job = work.train(*flags, "--workers", "2", "--ps", "1", "--threads", "1")
    assert job["parameters_sha256"] == alone["parameters_sha256"]


def test_channels_that_come_last_are_turned(work):
    pictures = np.random.default_rng(3).integers(0, 255, (40, 9, 7, 3))
    np.save("last.npy", pictures.astype(np.uint8))
    np.save("l.npy", np.arange(40) % 2)
    work.ok("data", "convert", "npy:last.npy,l.npy", "npy:first.npy,l2.npy")
    assert (np.load("first.npy") == pictures.transpose(0, 3, 1, 2)).all()
    stats = work.ok("data", "stats", "npy:last.npy", "--channels", "first",
                    "--json").json
    assert stats["shape"] == [9, 7, 3]


def test_wrong_arrays_are_refused_with_the_cure(work):
    np.save("f.npy", np.asfortranarray(np.load("x.npy")))
    np.save("yf.npy", np.load("y.npy").astype("f4"))
    np.save("hot.npy", np.eye(3, dtype=int)[np.load("y.npy")])
    pathlib.Path("cut.npy").write_bytes(
        pathlib.Path("x.npy").read_bytes()[:-1])
    for source, code, says in [
            ("npy:f.npy,y.npy", 1, ["f.npy", "Fortran", "ascontiguousarray"]),
            ("npy:x.npy,yf.npy", 2, ["yf.npy", "float32", "astype"]),
            ("npy:x.npy,hot.npy", 1, ["hot.npy", "[300, 3]", "argmax"]),
            ("npy:x.npy,yt.npy", 1, ["yt.npy", "60 labels", "300"]),
            ("npy:cut.npy,y.npy", 1, ["cut.npy", "truncated", "14528"]),
            ("npy:x.npy", 2, ["no labels", "npy:EXAMPLES,LABELS"]),
            ("npz:x.npy", 1, ["x.npy", "zip"])]:
        work.refused(code, "train", "softmax", "--data", source, *TEST,
                     "--quiet", says=says)
    work.refused(2, "train", "softmax", "--data", "npy:x.npy,y.npy",
                 says=["--test-data", "--holdout"])


TABLE = """id,color,size,kind
1,red,1.5,cat
2,"blue, dark",-2e1,dog
3,red,,cat
4,red,1.25,dog
"""
COLUMNS = ["--label-column", "kind", "--categories", "kind,color",
           "--ignore-columns", "id"]


@pytest.fixture
def table(cli):
    (cli.folder / "t.csv").write_text(TABLE)
    return cli


def test_tables_are_read_by_their_columns(table):
    stats = table.ok("data", "stats", "csv:t.csv", *COLUMNS, "--json").json
    assert stats["shape"] == [3] and stats["classes"] == [2, 2]
    assert stats["missing"] == 1 and stats["least"] == -20
    table.train("--data", "csv:t.csv", "--test-data", "csv:t.csv", *COLUMNS,
                "--fill-missing", "0", "--batch", "2", "--steps", "300",
                "--run", "r")
    (table.folder / "new.csv").write_text("id,color,size\n9,red,1.5\n")
    lines = table.ok("predict", "r", "csv:new.csv", "--csv").out.splitlines()
    assert lines[0] == "source,example,rank,class,name,probability"
    assert lines[1].startswith("csv:new.csv,0,1,0,cat,")


@pytest.mark.parametrize("text, flags, says", [
    (TABLE, COLUMNS, ["t.csv:4", "column size", "--fill-missing"]),
    (TABLE, COLUMNS[:2], ["t.csv:2", "\"red\"", "--categories color"]),
    (TABLE, [], ["4 columns", "--label-column"]),
    ("y,a\n0,1\n1,2,3\n", [], ["t.csv:3", "more than 2 cells"]),
    ("y,a\n0,1\n1\n", [], ["t.csv:3", "1 cells, expected 2"]),
    ("y,a\n0,1\n-1,2\n", [], ["t.csv:3", "label \"-1\""]),
    ("y,a\n0,1\n\"1,2\n", [], ["t.csv:3", "quote is not closed"]),
    ("y,a\n", [], ["no rows"])])
def test_wrong_tables_are_named_by_line(cli, text, flags, says):
    (cli.folder / "t.csv").write_text(text)
    result = cli.run("train", "softmax", "--quiet", "--data", "csv:t.csv",
                     "--test-data", "csv:t.csv", *flags)
    assert result.code in (1, 2), result
    for part in says:
        assert part in result.err, result


def test_packed_tables_and_parts_are_one(work):
    work.ok("data", "convert", "npz:a.npz", "csv:a.csv")
    lines = pathlib.Path("a.csv").read_text().splitlines(True)
    pathlib.Path("p1.csv").write_text("".join(lines[:100]))
    pathlib.Path("p2.csv").write_text(lines[0] + "".join(lines[100:]))
    for place in "csv:a.csv", "csv:p*.csv":
        work.ok("data", "convert", place, "npy:b.npy,bl.npy")
        assert (np.load("b.npy") == np.load("x.npy").reshape(300, 48)).all()
        assert (np.load("bl.npy") == np.load("y.npy")).all()
    for ending in ".gz", ".zst":
        work.ok("data", "convert", "npz:a.npz", f"csv:q.csv{ending}")
        work.ok("data", "convert", f"csv:q.csv{ending}", "npy:b.npy,bl.npy")
        assert (np.load("b.npy") == np.load("x.npy").reshape(300, 48)).all()


def test_folder_of_pictures(work):
    work.ok("data", "convert", "npz:a.npz", "images:p/train")
    work.ok("data", "convert", "npz:a.npz", "images:p/test", "--split", "test")
    first = work.train("--data", "images:p", *STEPS, "--run", "r")
    assert first["test_accuracy"] > 0.9
    again = work.train("--data", "images:p", *STEPS)  # from the cache
    assert again["parameters_sha256"] == first["parameters_sha256"]

    broken = pathlib.Path("p/train/1/broken.png")
    broken.write_bytes(b"\x89PNG\r\n\x1a\nno more")
    work.refused(1, "train", "softmax", "--quiet", "--data", "images:p",
                 says=["p/train/1/broken.png", "PNG", "--skip-bad"])
    work.train("--data", "images:p", "--skip-bad", "1", *STEPS)

    name = sorted(os.listdir("p/test/2"))[0]
    line = work.ok("predict", "r", f"p/test/2/{name}", "--json").json
    assert line["example"] == name and line["name"] == "2"


def test_names_of_folders_and_files_stay_on_their_line(work):
    hostile = "a\x1b[2J\nforged"
    quoted = "a\\x1b[2J\\x0aforged"
    work.ok("data", "convert", "npz:a.npz", "images:p/train")
    work.ok("data", "convert", "npz:a.npz", "images:p/test", "--split", "test")
    for split in "train", "test":
        os.rename(f"p/{split}/2", f"p/{split}/{hostile}")
    name = sorted(os.listdir("p/test/0"))[0]
    os.rename(f"p/test/0/{name}", f"p/test/0/{hostile}.png")
    work.train("--data", "images:p", *STEPS, "--run", "r")
    stats = work.ok("data", "stats", "images:p")
    classes = work.ok("predict", "r", "images:p", "--top", "3")
    files = work.ok("predict", "r", f"p/test/0/{hostile}.png", "images:p")
    sizes = (len(stats.out.splitlines()), 60, 61)
    for result, lines in zip((stats, classes, files), sizes):
        assert quoted in result.out, result
        assert len(result.out.split("\n")) == lines + 1, result
        assert result.out.replace("\n", "").isprintable(), result
    assert all(f" {quoted} " in line for line in classes.out.splitlines())
    assert files.out.startswith(f"p/test/0/{quoted}.png:{quoted}.png "), files
    rows = work.ok("predict", "r", "images:p", "--json").out.splitlines()
    assert hostile in {json.loads(row)["name"] for row in rows}


def test_augmentation_repeats_and_resumes(work):
    flags = ["--data", "npz:a.npz", "--augment", "flip,shift:1,crop:0.8",
             "--batch", "30"]
    plain = work.train(*flags[:2], "--batch", "30", "--epochs", "4")
    whole = work.train(*flags, "--epochs", "4")
    assert whole["parameters_sha256"] != plain["parameters_sha256"]
    work.train(*flags, "--epochs", "2", "--run", "r")
    resumed = work.train(*flags, "--epochs", "4", "--run", "r", "--resume")
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]
    work.refused(2, "train", "softmax", "--data", "npz:a.npz", "--augment",
                 "turn", says=["turn", "flip, shift:PIXELS"])


def test_picture_of_examples(work):
    work.ok("data", "stats", "npz:a.npz", "--picture", "some.png")
    head = pathlib.Path("some.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(head[16:20], "big") == 10 * 8 - 2


def test_page_on_data_runs_as_it_stands(cli):
    """All its commands, in order."""
    out = cli.page("docs/data.md")
    for part in "example,rank,class", '"name":"versicolor"', "class 0":
        assert part in out, (part, out)
