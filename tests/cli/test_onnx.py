"""Models from ONNX files, and back."""

import os
import re

import numpy as np
import pytest

from conftest import ROOT
from onnx_file import Read, block, colours, model, node, run, tensor

DATA = ["--batch", "50", "--threads", "1"]
X, Y = {"x": [None, 1, 28, 28]}, {"y": [None, 10]}


def weights(**shapes):
    random = np.random.default_rng(7)
    return {name.replace("__", "."):
            (random.standard_normal(shape) * 0.05).astype(np.float32)
            for name, shape in shapes.items()}


def mlp(**more):
    """As PyTorch exports nn.Linear."""
    return model(
        [node("Flatten", "x", "flat", "flatten", axis=1),
         node("Gemm", "flat fc1.weight fc1.bias", "h", "fc1", transB=1),
         node("Relu", "h", "hr", "relu"),
         node("Gemm", "hr fc2.weight fc2.bias", "y", "fc2", transB=1)],
        weights(fc1__weight=(32, 784), fc1__bias=(32,), fc2__weight=(10, 32),
                fc2__bias=(10,)), X, Y, **more)


def keras_mlp():
    """As tf2onnx writes Dense layers: channels last, MatMul and Add, and a
    Softmax at the end."""
    return model(
        [node("Constant", "", "shape", value=np.array([-1, 784])),
         node("Reshape", "x shape", "flat"),
         node("MatMul", "flat dense/kernel:0", "a", "dense/MatMul"),
         node("Add", "a dense/bias:0", "b", "dense/BiasAdd"),
         node("Tanh", "b", "c", "dense/Tanh"),
         node("MatMul", "c out/kernel:0", "d", "out/MatMul"),
         node("Add", "out/bias:0 d", "e", "out/BiasAdd"),
         node("Softmax", "e", "y", "out/Softmax", axis=-1)],
        weights(**{"dense/kernel:0": (784, 24), "dense/bias:0": (24,),
                   "out/kernel:0": (24, 10), "out/bias:0": (10,)}),
        {"x": [None, 28, 28, 1]}, Y, opset=13)


def cnn():
    """x.view(x.size(0), -1) of PyTorch, and most of the operators."""
    return model(
        [node("Conv", "x c1.weight c1.bias", "c", "c1", kernel_shape=[5, 5],
              strides=[1, 1], pads=[2, 2, 2, 2], dilations=[1, 1], group=1),
         node("Sigmoid", "c", "s", "s1"),
         node("MaxPool", "s", "m", "p1", kernel_shape=[2, 2], strides=[2, 2]),
         node("Conv", "m c2.weight", "d", "c2", kernel_shape=[3, 3],
              auto_pad="SAME_UPPER"),
         node("Add", "d m", "r", "residual"),
         node("AveragePool", "r", "a", "p2", kernel_shape=[2, 2],
              strides=[2, 2], ceil_mode=1),
         node("Shape", "a", "size"),
         node("Constant", "", "zero", value=np.array(0)),
         node("Gather", "size zero", "batch"),
         node("Constant", "", "axes", value=np.array([0])),
         node("Unsqueeze", "batch axes", "batches"),
         node("Constant", "", "rest", value=np.array([-1])),
         node("Concat", "batches rest", "shape", axis=0),
         node("Reshape", "a shape", "flat", "view"),
         node("Mul", "flat two", "big"),
         node("Dropout", "big ratio", "kept", "drop"),
         node("Identity", "kept", "same"),
         node("Gemm", "same fc.weight fc.bias", "y", "fc", transB=0)],
        weights(c1__weight=(4, 1, 5, 5), c1__bias=(4,), c2__weight=(4, 4, 3, 3),
                fc__weight=(196, 10), fc__bias=(10,))
        | {"two": np.float32(2), "ratio": np.float32(0.1)}, X, Y)


def padded():
    """Pooling with padding, as in ResNets of torchvision, and a shift of
    each channel."""
    return model(
        [node("Conv", "x c.weight c.bias", "c", "c", kernel_shape=[3, 3],
              strides=[2, 2], pads=[1, 1, 1, 1]),
         node("Relu", "c", "r"),
         node("MaxPool", "r", "m", "p1", kernel_shape=[3, 3], strides=[2, 2],
              pads=[1, 1, 1, 1]),
         node("Dropout", "m ratio", "d"),
         node("MaxPool", "d", "n", "p2", kernel_shape=[2, 2], strides=[1, 1],
              pads=[1, 1, 1, 1], ceil_mode=1),
         node("AveragePool", "n", "a", "p3", kernel_shape=[4, 4],
              strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1),
         node("Add", "shift a", "s", "shift"),
         node("Flatten", "s", "flat", axis=1),
         node("Gemm", "flat fc.weight fc.bias", "y", "fc", transB=1)],
        weights(c__bias=(4,), shift=(4, 1, 1), fc__weight=(10, 64),
                fc__bias=(10,)) | {"c.weight": weights(w=(4, 1, 3, 3))["w"] * 10} | {"ratio": np.float32(0.1)}, X, Y)


NORM = [node("ReduceMean", "h", "mean", axes=[-1]),
        node("Sub", "h mean", "d", "centred"),
        node("Pow", "d two", "square"),
        node("ReduceMean", "square", "var", axes=[-1]),
        node("Add", "var epsilon", "more"),
        node("Sqrt", "more", "deviation"),
        node("Div", "d deviation", "normal"),
        node("Mul", "normal norm.weight", "scaled"),
        node("Add", "scaled norm.bias", "n", "norm")]
NORM_WEIGHTS = weights(fc1__weight=(32, 784), fc1__bias=(32,),
                       fc2__weight=(10, 32), fc2__bias=(10,), norm__bias=(32,)
                       ) | {"norm.weight": np.linspace(.5, 2, 32, dtype="f"),
                            "two": np.float32(2),
                            "one": np.float32(1), "half": np.float32(.5),
                            "root": np.float32(2 ** .5),
                            "epsilon": np.float32(1e-5)}


GELU = [node("Div", "n root", "a"), node("Erf", "a", "b"),
        node("Add", "b one", "c"), node("Mul", "n c", "e"),
        node("Mul", "e half", "r", "gelu")]


def norms(parts=NORM, gelu=GELU):
    """Layer normalization and GELU as PyTorch exports them before operator
    set 17."""
    return model(
        [node("Flatten", "x", "flat", "flatten", axis=1),
         node("Gemm", "flat fc1.weight fc1.bias", "h", "fc1", transB=1), *parts,
         *gelu, node("Gemm", "r fc2.weight fc2.bias", "y", "fc2", transB=1)],
        NORM_WEIGHTS, X, Y, opset=13)


def norms_squared():
    """With a product in place of the power, and the weights in front."""
    return norms([*NORM[:2], node("Mul", "d d", "square"), *NORM[3:7],
                  node("Mul", "norm.weight normal", "scaled"),
                  node("Add", "norm.bias scaled", "n", "norm")])


MODELS = {"mlp": mlp, "keras_mlp": keras_mlp, "cnn": cnn, "padded": padded,
          "norms": norms, "norms_squared": norms_squared}


@pytest.fixture
def write(cli):
    def go(name, data):
        (cli.folder / name).write_bytes(data)
        return name
    return go


def train(cli, file, *flags):
    return cli.ok("train", file, *DATA, *cli.data, "--quiet", "--json",
                  *flags).json


@pytest.fixture(scope="session")
def few(digits, tmp_path_factory):
    """A folder with 1000 of the built-in examples, of which 200 are for tests;
    those as arrays."""
    folder = tmp_path_factory.mktemp("few")
    for part, count in ("train", 1000), ("t10k", 200):
        for kind, size, head in (("images-idx3", 784, 16),
                                 ("labels-idx1", 1, 8)):
            name = f"{part}-{kind}-ubyte"
            raw = (digits / name).read_bytes()
            (folder / name).write_bytes(
                raw[:4] + count.to_bytes(4, "big")
                + raw[8:head + size * count])
    return (folder, np.frombuffer(raw, np.uint8, 200, 8) * 1,
            np.frombuffer((digits / "t10k-images-idx3-ubyte").read_bytes(),
                          np.uint8, 200 * 784, 16) / 255)


@pytest.fixture(autouse=True)
def examples(cli, few):
    cli.data = ["--data", f"mnist:{few[0]}"]


def cross_entropy(outputs, wanted, probable):
    if not probable:
        outputs = np.exp(outputs - outputs.max(1, keepdims=True))
        outputs = outputs / outputs.sum(1, keepdims=True)
    return -np.log(outputs[np.arange(len(wanted)), wanted]).mean()


@pytest.mark.parametrize("name", MODELS)
def test_a_file_trains_and_comes_back(cli, write, few, name):
    """Before a step the loss is that of the file as NumPy computes it, and
    after the training that of the exported file."""
    made = MODELS[name]()
    file = write(name + ".onnx", made)
    before = Read(made)
    _, wanted, pixels = few
    pixels = pixels.reshape(
        (200, 28, 28, 1) if name == "keras_mlp" else (200, 1, 28, 28))
    start = train(cli, file, "--steps", "1", "--lr", "1e-12", "--run", "start")
    if name not in ("keras_mlp", "cnn"):  # onnx_file.run has not all of these
        assert start["test_loss"] == pytest.approx(cross_entropy(
            run(made, pixels), wanted, False), rel=1e-5)
    done = train(cli, file, "--epochs", "3", "--lr", "0.1", "--run",
                 "run", "--optimizer", "momentum")
    assert done["model"] == file
    assert done["test_loss"] < 0.9 * start["test_loss"]
    cli.ok("export", "run", "-o", "out.onnx")
    out = (cli.folder / "out.onnx").read_bytes()
    after = Read(out)
    assert after.inputs == before.inputs and after.outputs == before.outputs
    trained = {n: w for n, w in before.weights.items() if w.size > 1}
    for weight, array in trained.items():
        assert after.weights[weight].shape == array.shape, weight
        assert not np.array_equal(after.weights[weight], array), weight
    assert done["test_loss"] == pytest.approx(cross_entropy(
        run(out, pixels), wanted, name == "keras_mlp"), rel=1e-5)
    # What was written is read again, to the same bits.
    again = train(cli, "out.onnx", "--steps", "1", "--lr", "1e-12")
    assert again["test_loss"] == done["test_loss"]
    assert again["parameters_sha256"] == done["parameters_sha256"]
    assert cli.ok("eval", "run", "--json").json["test_loss"] == \
        done["test_loss"]


EXPORTED = {file.stem: file for file in
            sorted((ROOT / "tests/golden/onnx").glob("*.onnx"))}


@pytest.mark.parametrize("name", EXPORTED)
def test_exports_of_pytorch_and_keras_train(cli, few, name):
    """On one parameter server and two workers; back, with its weights under
    their names.  tests/golden/make_onnx.py made the files."""
    before = Read(EXPORTED[name].read_bytes())
    result = cli.ok("train", EXPORTED[name], *cli.data, "--batch", "50",
                    "--threads", "1", "--steps", "20", "--json", "--workers",
                    "2", "--ps", "1", "--lr", "0.05", "--run", "run")
    done = result.json
    frozen = "batch normalization keeps the averages of the file"
    assert frozen not in result.err, result
    cli.ok("export", "run", "-o", "out.onnx")
    out = (cli.folder / "out.onnx").read_bytes()
    after = Read(out)
    for weight, array in before.weights.items():
        if array.dtype == np.float32 and array.size > 1:
            assert after.weights[weight].shape == array.shape, weight
    assert after.inputs == before.inputs and after.outputs == before.outputs
    _, wanted, pixels = few
    pixels = pixels.reshape((200, 28, 28) if name.startswith("keras")
                            else (200, 1, 28, 28))
    assert done["test_loss"] == pytest.approx(cross_entropy(
        run(out, pixels), wanted, name.startswith("keras")), rel=1e-5)


def test_normalization_of_an_export_for_inference_is_frozen(cli, few):
    """And what `export` writes is for inference."""
    flags = [*cli.data, "--batch", "50", "--threads", "1", "--steps", "5",
             "--lr", "0.05"]
    cli.ok("train", EXPORTED["torch_resnet_train"], *flags, "--run", "a")
    cli.ok("export", "a", "-o", "a.onnx")
    result = cli.ok("train", "a.onnx", *flags, "--run", "b")
    assert "keeps the averages of the file" in result.err
    cli.ok("export", "b", "-o", "b.onnx")
    start = Read(EXPORTED["torch_resnet_train"].read_bytes()).weights
    a, b = (Read((cli.folder / f"{n}.onnx").read_bytes()).weights
            for n in "ab")
    for weight in "1.running_mean", "4.bn2.running_var":
        assert not np.array_equal(start[weight], a[weight]), weight
        assert np.array_equal(a[weight], b[weight]), weight
    assert not np.array_equal(a["1.weight"], b["1.weight"])


def test_tasks_of_a_job_have_the_same_model(cli, write):
    """One parameter server and two workers, and the ring: as one process."""
    file = write("mlp.onnx", mlp())
    one = train(cli, file, "--steps", "20", "--micro-batches", "2", "--run",
                "a")
    for flags in (["--ps", "1"], ["--engine", "ring"]):
        job = train(cli, file, "--steps", "20", "--workers", "2", *flags)
        assert job["parameters_sha256"] == one["parameters_sha256"], flags
        assert job["deterministic"]


def test_the_run_keeps_its_model(cli, write):
    """eval does not need the file any more, and resume refuses another one."""
    file = write("mlp.onnx", mlp())
    done = train(cli, file, "--steps", "20", "--run", "a")
    more = ["train", file, *DATA, *cli.data, "--run", "a", "--resume", "--steps", "40"]
    write("mlp.onnx", mlp(opset=16))
    cli.refused(2, *more, says=["mlp.onnx is not the model that the run was "
                                "started with"])
    (cli.folder / "mlp.onnx").unlink()
    assert cli.ok("eval", "a", "--json").json["parameters_sha256"] == \
        done["parameters_sha256"]
    write("mlp.onnx", mlp())
    assert cli.ok(*more, "--quiet", "--json").json["resumed_step"] == 20


def test_a_file_predicts_numbers(cli, write):
    """With a loss that is not that of classes, whose labels are two
    numbers."""
    random = np.random.default_rng(1)
    x = random.standard_normal((300, 4)).astype(np.float32)
    wanted = (x @ random.standard_normal((4, 2))
              + random.normal(0, 0.1, (300, 2))).astype(np.float32)
    np.save(cli.folder / "x.npy", x)
    np.save(cli.folder / "wanted.npy", wanted)
    file = write("line.onnx", model(
        [node("Gemm", "x fc.weight fc.bias", "y", "fc", transB=1)],
        weights(fc__weight=(2, 4), fc__bias=(2,)), {"x": [None, 4]},
        {"y": [None, 2]}))
    done = cli.ok("train", file, "--data", "npy:x.npy,wanted.npy", "--loss",
                  "squared-error", "--holdout", "0.2", "--batch", "20",
                  "--epochs", "20", "--lr", "0.1", "--quiet", "--json", "--run",
                  "run").json
    assert done["test_r2"] > 0.9
    cli.ok("export", "run", "-o", "out.onnx")
    off = run((cli.folder / "out.onnx").read_bytes(), x[240:]) - wanted[240:]
    assert done["test_rmse"] == pytest.approx(
        np.sqrt((off ** 2).mean(axis=0)).mean(), rel=1e-4)


def test_init_replaces_the_values_of_the_file(cli, write):
    """--init in place of the file's values."""
    file = write("mlp.onnx", mlp())
    a = train(cli, file, "--steps", "1", "--lr", "1e-12")
    b = train(cli, file, "--steps", "1", "--lr", "1e-12", "--init", "glorot")
    c = train(cli, file, "--steps", "1", "--lr", "1e-12", "--init", "glorot",
              "--seed", "2")
    assert len({r["parameters_sha256"] for r in (a, b, c)}) == 3


def test_weights_beside_the_file(cli, write):
    """External data, which stays in the file's folder."""
    plain = train(cli, write("mlp.onnx", mlp()), "--steps", "5")
    (cli.folder / "net/more").mkdir(parents=True)
    parts, offset = {}, 16
    names = weights(fc1__weight=(32, 784), fc1__bias=(32,),
                    fc2__weight=(10, 32), fc2__bias=(10,))
    blob = b"\0" * 16
    for name, array in names.items():
        parts[name] = tensor(name, array, ("more/w.bin", offset))
        blob += array.tobytes()
        offset += array.nbytes

    def file(name, parts):
        return write(name, model(
            [node("Flatten", "x", "flat", "flatten", axis=1),
             node("Gemm", "flat fc1.weight fc1.bias", "h", "fc1", transB=1),
             node("Relu", "h", "hr", "relu"),
             node("Gemm", "hr fc2.weight fc2.bias", "y", "fc2", transB=1)],
            parts, X, Y))
    path = file("net/mlp.onnx", parts)
    cli.refused(1, "train", path, *DATA, says='its weights are in "more/w.bin"')
    (cli.folder / "net/more/w.bin").write_bytes(blob[:-1])
    cli.refused(1, "train", path, *DATA,
                says="more/w.bin has 101815 bytes, but the weights fc2.bias")
    (cli.folder / "net/more/w.bin").write_bytes(blob)
    beside = train(cli, path, "--steps", "5", "--run", "a")
    assert beside["parameters_sha256"] == plain["parameters_sha256"]
    cli.ok("export", "a", "-o", "out.onnx")
    assert set(names) <= set(
        Read((cli.folder / "out.onnx").read_bytes()).weights)
    # Out of the folder: by its path, by an absolute one, by a link.
    (cli.folder / "w.bin").write_bytes(blob)
    os.symlink(cli.folder / "w.bin", cli.folder / "net/link.bin")
    for place in "../w.bin", str(cli.folder / "w.bin"), "link.bin":
        wrong = dict(parts)
        wrong["fc1.bias"] = tensor("fc1.bias", names["fc1.bias"], (place, 16))
        cli.refused(1, "train", file("net/wrong.onnx", wrong), *DATA,
                    says=["in its folder"] if place[0] == "/"
                    else "is outside its folder")


GEMM = node("Gemm", "flat fc1.weight fc1.bias", "y", "fc1", transB=1)
FLAT = node("Flatten", "x", "flat", "flatten", axis=1)
LINEAR = weights(fc1__weight=(10, 784), fc1__bias=(10,))


@pytest.mark.parametrize("data, says", [
    (b"", "it holds no graph"),
    (b"\0\1\2", "not an ONNX model"),
    (mlp()[:-200], "not an ONNX model"),
    (b"\x3a\x80\x80\x04" + b"\x0a\0" * 32768, "made to exhaust memory"),
    (mlp(opset=11), "operator set 11, expected 13 to 20"),
    (model([FLAT, node("LSTM", "flat", "h", "rnn"),
            node("Gelu", "h", "y", "act", domain="com.microsoft")],
           LINEAR, X, Y), "node rnn (LSTM), node act (com.microsoft.Gelu)"),
    (model([FLAT, GEMM], LINEAR, {**X, "z": [None, 3]}, Y),
     "the inputs x and z"),
    (model([FLAT, GEMM], LINEAR, X, {**Y, "h": [None]}), "2 outputs"),
    (model([FLAT, GEMM], LINEAR, X, {"z": [None, 10]}), "makes its output z"),
    (model([GEMM, FLAT], LINEAR, X, Y),
     "node fc1 (Gemm): its input flat is not made"),
    (model([FLAT, FLAT, GEMM], LINEAR, X, Y), "two values have the name flat"),
    (model([FLAT, GEMM], LINEAR, {"x": [None, 3, 32, 32]}, Y),
     "input x is [batch, 3, 32, 32], but the examples are"),
    (model([FLAT, GEMM], weights(fc1__weight=(10, 700), fc1__bias=(10,)), X, Y),
     "node fc1 (Gemm)"),
    (model([FLAT, GEMM], weights(fc1__weight=(7, 784), fc1__bias=(7,)), X,
           {"y": [None, 7]}), " has 10 classes"),
    (model([node("Conv", "x c.weight", "c", "conv", dilations=[2, 2]), FLAT,
            GEMM], LINEAR | weights(c__weight=(1, 1, 3, 3)), X, Y),
     "node conv (Conv): dilations of 2 and 1 groups"),
    (model([node("Conv", "x c.weight", "c", "conv", strides=[1, 2]), FLAT,
            GEMM], LINEAR | weights(c__weight=(1, 1, 3, 3)), X, Y),
     "its strides are 1 and 2"),
    (norms(gelu=[*GELU[:4], node("Mul", "e two", "r", "odd")]),
     "node odd (Mul): with Erf a GELU is expected"),
    (norms(gelu=[*GELU[:4], node("Relu", "e", "r", "odd")]),
     "node odd (Relu): its input e is computed by Erf, which is supported "
     "only as part of GELU"),
    (norms([*NORM[:2], node("Div", "d mean", "n", "odd")]),
     "node odd (Div): it is supported only as part of a layer normalization"),
    (norms([*NORM[:1], node("Relu", "mean", "n", "odd")]),
     "node odd (Relu): its input mean is computed by ReduceMean over the last "
     "dimension, which is supported only as part of layer normalization"),
    (norms([*NORM[:1], node("Sub", "mean h", "d", "odd"), *NORM[2:]]),
     "node odd (Sub): it is supported only as part of a layer normalization"),
    (model([node("MaxPool", "x", "c", "pool", kernel_shape=[2, 2],
                 pads=[1, 1, 1, 1]), FLAT, GEMM], LINEAR, X, Y),
     "node pool (MaxPool): padding of 1: it is supported only after Relu"),
    (model([node("AveragePool", "x", "c", "pool", kernel_shape=[2, 2],
                 pads=[1, 1, 1, 1]), FLAT, GEMM], LINEAR, X, Y),
     "node pool (AveragePool): padding of 1: it is supported only with "
     "count_include_pad"),
    (model([node("Relu", "x", "r"),
            node("MaxPool", "r", "c", "pool", kernel_shape=[2, 2],
                 pads=[2, 2, 2, 2]), FLAT, GEMM], LINEAR, X, Y),
     "padding of 2: expected less than its windows of 2"),
    (model([node("Pad", "x pads", "c", "pad"), FLAT, GEMM],
           LINEAR | {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 0])}, X, Y),
     "node pad (Pad): expected the same number of zeros on all sides"),
    (model([node("Transpose", "x", "t", "nhwc", perm=[0, 3, 2, 1]),
            node("Flatten", "t", "flat"), GEMM], LINEAR, X, Y),
     "node nhwc (Transpose): it moves elements"),
    (model([FLAT, node("LogSoftmax", "flat", "s", "early"),
            node("Gemm", "s fc1.weight fc1.bias", "y", transB=1)],
           LINEAR, X, Y), "node early (LogSoftmax): it is expected at the end"),
    (model([FLAT, node("Relu", "fc1.weight", "w"),
            node("Gemm", "flat w", "y", transB=1)], LINEAR, X, Y),
     "does not depend on the examples"),
])
def test_unsupported_files_are_refused_by_name(cli, write, data, says):
    path = write("bad.onnx", data)
    result = cli.run("train", path, *DATA, *cli.data, "--run", "a")
    assert result.code in (1, 2), result
    lines = result.err.splitlines()
    assert len([line for line in lines if line.startswith("paceline: ")
                and says in line]) == 1, result
    assert not (cli.folder / "a").exists(), result
    assert "bad.onnx" in result.err


def test_names_in_a_file_stay_on_their_line(cli, write):
    path = write("a.onnx", model(
        [node("Flatten", "x", "flat", "a\x1b[2J\nforged"), GEMM],
        LINEAR, X, Y, more=block(2, "b\x1b[2J\nforged")))
    result = cli.ok("models", path)
    assert "\na\\x1b[2J\\x0aforged " in result.out, result
    assert result.out.replace("\n", "").isprintable(), result
    assert "forged" not in {line[:6] for line in result.out.splitlines()}


BUILT_IN = {"softmax": [], "lenet": [], "alexnet": ["--classes", "10"],
            "resnet18": ["--width", "4", "--stem", "large"]}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_models_are_exported(cli, name):
    """And come back."""
    large = name in ("alexnet", "resnet18")
    if large:
        cli.data = ["--data", colours(cli.folder), "--batch", "4"]
    done = train(cli, name, *BUILT_IN[name], "--steps", "2" if large else "20",
                 "--run", name)
    cli.ok("export", name, "-o", name + ".onnx")
    again = train(cli, name + ".onnx", "--steps", "1", "--lr", "1e-12", "--run",
                  "again")
    assert again["test_loss"] == pytest.approx(done["test_loss"], rel=1e-6)
    cli.ok("export", "again", "-o", "again.onnx")
    first, second = (Read((cli.folder / file).read_bytes())
                     for file in (name + ".onnx", "again.onnx"))
    assert [op for op, *_ in first.nodes] == [op for op, *_ in second.nodes]
    for weight, array in first.weights.items():
        if array.dtype == np.float32 and array.size > 1:
            assert np.allclose(array, second.weights[weight], 0, 1e-10)


def test_sparse_models_are_not_exported(cli):
    cli.ok("train", "sparse", "--steps", "2", "--features", "1000",
           "--examples", "5000", "--run", "s", "--quiet")
    cli.refused(1, "export", "s", says="a sparse model has no graph")
    cli.refused(2, "export", says="export needs one run folder")


def test_the_document(cli, write, few):
    """The commands of docs/onnx.md, and the operators that it lists."""
    text = (ROOT / "docs/onnx.md").read_text()
    commands = [line.split()[1:] for line in text.splitlines()
                if line.startswith("    paceline ")]
    assert [c[0] for c in commands[:4]] == ["train", "train", "models",
                                            "export"]
    write("net.onnx", EXPORTED["torch_mlp"].read_bytes())
    short = ["--steps", "4", "--threads", "1", "--quiet"]
    for command in commands[:4]:
        command = [f"mnist:{few[0]}" if word == "mnist:DIR" else word
                   for word in command]
        if "--epochs" in command:
            at = command.index("--epochs")
            del command[at:at + 2]
        cli.ok(*command, *(short if command[0] == "train" else []))
    assert (cli.folder / "trained.onnx").exists()
    write("speech.onnx", model([node("LSTM", "x", "y", "rnn")], {}, X, Y))
    refusal = re.search(r"^    paceline: (speech.*)$", text, re.M)[1]
    assert cli.run("train", "speech.onnx").err == f"paceline: {refusal}\n"
    listed = re.search(r"\*\*Operators\*\*:(.*?)\n\n", text, re.S)[1]
    listed = set(re.findall(r"\b[A-Z]\w+", listed)) - {"GELU"}
    known = set()
    for file in (ROOT / "src/nn/onnx").glob("import_*.c"):
        known |= set(re.findall(r'\{ "([A-Z]\w+)", ', file.read_text()))
    assert listed == known
