"""Training: arrays, flags, strategies, callbacks, and how it ends."""

import os
import signal
import threading

import numpy as np
import pytest

import paceline
from paceline import (Add, Conv2D, Dense, Flatten, Input, MaxPool, Network, ReLU,
                      Sequential)

FAST = {"monitor_every": 0, "progress": False}


def test_softmax_learns_from_arrays(clouds):
    run = paceline.train("softmax", clouds, test_data=clouds, epochs=20,
                         batch=30, lr=0.1, **FAST)
    assert run.summary["stopped_by"] == "epochs"
    assert run.summary["test_accuracy"] > 0.95
    assert (run.predict(clouds[0]) == clouds[1]).mean() > 0.95


def test_sparse_learns_from_csr(clicks):
    run = paceline.train("sparse", clicks, epochs=10, batch=20,
                         optimizer="adagrad", lr=0.5, **FAST)
    assert run.weights["sparse/weights"].shape == (50,)
    chance = run.predict_proba(clicks[0])
    assert chance.shape == (1000,)
    assert ((chance > 0.5) == clicks[1]).mean() > 0.9


def test_csr_widths_give_equal_bits(clicks):
    import copy
    wide = copy.copy(clicks[0])
    wide.indptr, wide.indices = (a.astype(np.int64)
                                 for a in (wide.indptr, wide.indices))
    runs = [paceline.train("sparse", (m, clicks[1]), steps=50, batch=20, **FAST)
            for m in (clicks[0], wide)]
    assert runs[0].summary["parameters_sha256"] == \
        runs[1].summary["parameters_sha256"]


def test_sequential_of_images_learns():
    random = np.random.default_rng(3)
    y = np.arange(200) % 2
    x = random.integers(0, 60, (200, 12, 12)).astype(np.uint8)
    x[y == 1, 3:9, 3:9] += 150
    net = Sequential([Conv2D(4, 3), ReLU(), MaxPool(2), Flatten(), Dense(2)])
    run = paceline.train(net, (x, y), epochs=8, batch=20, lr=0.1, **FAST)
    assert (run.predict(x) == y).mean() > 0.95
    assert run.weights["conv1/weights"].shape == (4, 1, 3, 3)


def test_graph_with_branches_learns(clouds):
    x = Input()
    h = ReLU()(Dense(16)(x))
    net = Network(Dense()(Add()(h, ReLU()(Dense(16)(h)))), name="branches")
    run = paceline.train(net, clouds, epochs=10, batch=30, lr=0.05, **FAST)
    assert run.summary["model"] == "branches"
    assert (run.predict(clouds[0]) == clouds[1]).mean() > 0.95


def test_jobs_of_threads_end_in_the_bits_of_micro_batches(clouds):
    same = {"steps": 40, "batch": 30, "threads": 1, **FAST}
    alone = paceline.train("softmax", clouds, micro_batches=2, **same)
    served = paceline.train("softmax", clouds, workers=2, ps=1, **same)
    assert served.summary["workers"] == 2 and served.summary["ps"] == 1
    assert alone.summary["parameters_sha256"] == \
        served.summary["parameters_sha256"]


def test_asynchronous_job_learns(clouds):
    run = paceline.train("softmax", clouds, workers=2, ps=1, mode="async",
                         epochs=10, batch=30, **FAST)
    assert (run.predict(clouds[0]) == clouds[1]).mean() > 0.9


def test_two_trainings_at_once_end_in_the_bits_of_one(clouds):
    def once():
        found.append(paceline.train("softmax", clouds, steps=200, batch=30, **FAST)
                     .summary["parameters_sha256"])

    found = []
    threads = [threading.Thread(target=once) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    once()
    assert len(found) == 3 and len(set(found)) == 1


def test_source_string_is_the_flag_data():
    run = paceline.train("softmax", "synthetic", examples=500, steps=10, **FAST)
    assert run.settings["args"]["data"] == "synthetic"


def test_flags_are_those_of_the_command_line(clouds):
    run = paceline.train("softmax", clouds, steps=10, batch=30, lr=0.25,
                         optimizer="momentum", nesterov=True, eval_batch=None,
                         **FAST)
    args = run.settings["args"]
    assert (args["lr"], args["nesterov"], args["optimizer"]) == (
        "0.25", "true", "momentum")


def test_values_of_numpy_and_lists_are_flags_too(clouds):
    run = paceline.train([Dense(8), ReLU(), Dense()], clouds, steps=10,
                         batch=np.int64(30), lr=np.float32(0.25),
                         standardize=np.bool_(True), **FAST)
    assert [run.settings["args"][name] for name in ("batch", "lr", "standardize")] \
        == ["30", "0.25", "true"]
    run = paceline.train("mlp", clouds, steps=10, batch=30, hidden=[9, 7], **FAST)
    assert run.weights["dense2/weights"].shape == (7, 9)


def test_network_is_trained_on_from_an_onnx_file(clouds, tmp_path):
    x, y = clouds
    run = paceline.train([Dense(9), ReLU(), Dense()], clouds, epochs=5, batch=30,
                         lr=0.1, **FAST)
    run.export(tmp_path / "net.onnx")
    other = paceline.train(str(tmp_path / "net.onnx"), clouds, steps=1, batch=30,
                           lr=1e-12, **FAST)
    assert np.allclose(other.predict_proba(x), run.predict_proba(x), atol=1e-5)
    assert (paceline.Run(other.folder).predict(x) == run.predict(x)).all()


def test_run_keeps_its_layers(clouds, tmp_path):
    """From its beginning; layers of another training do not replace them."""
    folder, net = tmp_path / "run", [Dense(9), ReLU(), Dense()]
    seen = []

    def look(progress):
        seen.append((folder / "network.json").is_file())
        return progress.step > 0

    with pytest.raises(LookupError):
        paceline.train(net, clouds, epochs=1_000_000, batch=30, run=folder,
                       callbacks=lambda p: look(p) and {}[0], **FAST)
    assert seen[-1]
    with pytest.raises(paceline.UsageError, match="other layers"):
        paceline.train([Dense()], clouds, epochs=2, batch=30, run=folder,
                       resume=True, **FAST)
    run = paceline.train(net, clouds, steps=10, batch=30, run=tmp_path / "b", **FAST)
    again = paceline.train(net, clouds, steps=20, batch=30, run=tmp_path / "b",
                           resume=True, **FAST)
    assert again.summary["steps"] == 20 and run.predict(clouds[0]).shape == (900,)


@pytest.mark.parametrize("flags, sentence", [
    ({"lrr": 1}, "lrr"),
    ({"lr": -1}, "lr"),
    ({"restarts": 2, "workers": 2}, "restarts"),
    ({"quiet": True}, "quiet"),
    ({"batch": 1000}, "batch"),
])
def test_wrong_flags_are_refused_by_name(clouds, flags, sentence):
    with pytest.raises(paceline.UsageError, match=sentence):
        paceline.train("softmax", clouds, **FAST, **flags)


def test_wrong_model_is_refused(clouds):
    with pytest.raises(TypeError, match="expected the name"):
        paceline.train(object(), clouds)
    with pytest.raises(paceline.UsageError, match="softmaxx"):
        paceline.train("softmaxx", clouds)


def test_shape_that_does_not_fit_names_the_layer(clouds):
    with pytest.raises(paceline.UsageError, match="conv"):
        paceline.train(Sequential([Conv2D(4, 3), Dense()]), clouds, **FAST)


def test_callback_sees_progress_and_ends_the_training(clouds):
    seen = []

    def stop(progress):
        seen.append(progress)
        return progress.step > 0

    run = paceline.train("softmax", clouds, steps=10**9, batch=30,
                         callbacks=[stop], **FAST)
    assert run.summary["stopped_by"] == "interrupt"
    assert 0 < seen[-1].step <= run.summary["steps"]
    assert seen[-1].end_step == 10**9


def test_exception_of_a_callback_ends_the_training(clouds):
    def fail(progress):
        if progress.step > 0:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        paceline.train("softmax", clouds, steps=10**9, batch=30,
                       callbacks=[fail], **FAST)


def test_control_c_saves_and_raises_with_the_run(clouds, tmp_path):
    def press(progress):
        if progress.step > 0 and not pressed:
            pressed.append(progress.step)
            os.kill(os.getpid(), signal.SIGINT)

    pressed = []
    with pytest.raises(KeyboardInterrupt) as caught:
        paceline.train("softmax", clouds, steps=10**9, batch=30,
                       run=tmp_path / "run", callbacks=[press], **FAST)
    run = caught.value.run
    assert run.summary["stopped_by"] == "interrupt"
    assert run.summary["steps"] >= pressed[0]
    assert len(run.predict(clouds[0])) == 900


def test_run_can_be_resumed(clouds, tmp_path):
    same = {"batch": 30, **FAST}
    whole = paceline.train("softmax", clouds, steps=80, **same)
    paceline.train("softmax", clouds, steps=30, run=tmp_path / "a", **same)
    rest = paceline.train("softmax", clouds, steps=80, run=tmp_path / "a",
                          resume=True, **same)
    assert rest.summary["resumed_step"] == 30
    assert rest.summary["parameters_sha256"] == \
        whole.summary["parameters_sha256"]


def test_training_starts_from_given_weights(clouds):
    same = {"batch": 30, "lr": 1e-12, "steps": 1, **FAST}
    first = paceline.train("softmax", clouds, epochs=5, batch=30, **FAST)
    again = paceline.train("softmax", clouds, initial=first.weights, **same)
    for name, values in first.weights.items():
        assert np.allclose(again.weights[name], values, atol=1e-6)
    with pytest.raises(paceline.UsageError, match="no such parameter"):
        paceline.train("softmax", clouds, initial={"moon": np.zeros(3)}, **same)
    with pytest.raises(paceline.UsageError, match="one worker"):
        paceline.train("softmax", clouds, initial=first.weights, workers=2, ps=1,
                       **same)


def test_hosts_take_named_models_and_sources_only(clouds):
    with pytest.raises(paceline.UsageError, match="built-in"):
        paceline.train(Sequential([Dense()]), "digits", hosts=["a"])
    with pytest.raises(paceline.UsageError, match="source"):
        paceline.train("softmax", clouds, hosts=["a"])


@pytest.mark.parametrize("argument", [
    {"callbacks": print}, {"callbacks": [print]}, {"progress": True},
    {"label": "y"}, {"initial": {}}])
def test_hosts_refuse_what_has_no_effect_there(argument):
    (name,) = argument
    with pytest.raises(paceline.UsageError, match=f"hosts and {name}: "):
        paceline.train("softmax", "digits", hosts=["a"], **argument)


SSH = """#!/bin/sh
# ssh HOST COMMAND...: run it here
shift
exec sh -c "$*"
"""


def test_hosts_train_by_the_launcher(tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    run = paceline.train("softmax", "synthetic", examples=500, steps=10,
                         batch=30, hosts=["127.0.0.1", "127.0.0.2"],
                         ssh=str(ssh), progress=False, run=tmp_path / "run")
    assert run.summary["workers"] == 2


def test_flags_of_launch_and_of_train_are_distinguished(tmp_path, monkeypatch):
    program = tmp_path / "paceline"
    program.write_text('#!/bin/sh\necho "$@" >&2\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("PACELINE", str(program))
    with pytest.raises(paceline.Error, match=(
            "status 3: launch --hosts a,b --copy --ssh ssh -p 1 -- train softmax "
            "--lr 0.5 --data digits --quiet --run ")):
        paceline.train("softmax", "digits", hosts=["a", "b"], ssh="ssh -p 1",
                       copy=True, lr=0.5)
    with pytest.raises(paceline.Error, match="launch --hosts a --program /p --"):
        paceline.train("softmax", hosts=["a"], program="/p")
