"""eval, models, data, docs, --help, --version."""

import difflib
import json
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, SMALL


def test_eval_agrees_with_the_summary(cli):
    for name, flags in {"synthetic": SMALL,
                        "digits": ["--steps", "50"]}.items():
        summary = cli.train(*flags, "--run", name)
        score = cli.ok("eval", name, "--json").json
        for key in "test_loss", "test_accuracy", "parameters_sha256", "run":
            assert score[key] == summary[key]
        assert score["step"] == 50
        text = cli.ok("eval", name).out
        assert f"{100 * summary['test_accuracy']:.2f} %" in text
        assert f"{summary['test_loss']:.4f}" in text


def test_eval_reports_each_class(cli):
    cli.train("--steps", "50", "--run", "r")
    score = cli.ok("eval", "r", "--json").json
    kept = json.loads((cli.folder / "r/confusion.json").read_text())
    counts, classes = score["confusion"], kept["classes"]
    assert counts == kept["counts"] and len(counts) == classes ** 2
    assert kept["step"] == 50 and sum(counts) == score["examples"]
    right = [counts[c * classes + c] for c in range(classes)]
    assert sum(right) / sum(counts) == score["test_accuracy"]
    for c, row in enumerate(score["per_class"]):
        assert row["class"] == c
        assert row["recall"] == right[c] / row["examples"]
    text = cli.ok("eval", "r").out.splitlines()
    assert text[2].split()[:3] == ["class", "examples", "precision"]
    assert len(text) == 3 + classes
    wrong = kept["misclassified"]
    assert 0 < len(wrong) <= 16 and len(wrong[0]["pixels"]) > 1000
    assert all(w["label"] != w["predicted"] for w in wrong)


def test_eval_does_not_depend_on_threads(cli):
    cli.train(*SMALL, "--run", "r")
    scores = [cli.ok("eval", "r", "--json", "--threads", n).json
              for n in (1, 2, 3)]
    assert scores[0] == scores[1] == scores[2]


def test_eval_changes_nothing(cli):
    cli.train(*SMALL, "--run", "r")
    before = {p: p.read_bytes() for p in cli.folder.rglob("*") if p.is_file()}
    cli.ok("eval", "r")
    assert before == {p: p.read_bytes() for p in cli.folder.rglob("*")
                      if p.is_file()}


def test_eval_takes_other_data(cli, digits):
    summary = cli.train("--data", "digits", "--steps", "50", "--run", "r")
    score = cli.ok("eval", "r", "--json", "--data", f"idx:{digits}").json
    assert score["test_loss"] == summary["test_loss"]
    assert score["data"] == f"idx:{digits}"
    other = cli.ok("eval", "r", "--json", "--data", "synthetic").json
    assert other["test_loss"] != summary["test_loss"]


def test_models_lists_the_models(cli):
    assert re.search(r"^softmax +\S", cli.ok("models").out, re.M)


def test_models_shows_layers_and_memory(cli):
    text = cli.ok("models", "softmax").out
    assert re.search(r"^total +7850 +7840$", text, re.M), text
    assert "batch 100 with sgd" in text
    larger = cli.ok("models", "softmax", "--batch", "512", "--optimizer",
                    "adam").out
    assert "batch 512 with adam" in larger and "7850" in larger


def test_written_digits_train_to_the_same_bits(cli, digits):
    names = {f"{split}-{what}" for split in ("train", "t10k")
             for what in ("images-idx3-ubyte", "labels-idx1-ubyte")}
    assert {p.name for p in digits.iterdir()} == names
    drawn = cli.train("--data", "digits", "--steps", "50")
    for kind in "idx", "mnist":
        read = cli.train("--data", f"{kind}:{digits}", "--steps", "50")
        for key in "parameters_sha256", "test_loss", "test_accuracy":
            assert read[key] == drawn[key]


def test_digits_do_not_depend_on_threads(cli, digits):
    cli.ok("data", "digits", "--out", "one", "--threads", "1")
    for path in digits.iterdir():
        assert (cli.folder / "one" / path.name).read_bytes() == \
            path.read_bytes()


GENERATED = {"options": "docs/options.md", "man": "docs/paceline.1"}


@pytest.mark.parametrize("name", GENERATED)
def test_generated_document_is_up_to_date(cli, name):
    made = cli.ok("docs", name).out
    path = ROOT / GENERATED[name]
    kept = path.read_text() if path.exists() else ""
    differences = "".join(difflib.unified_diff(
        kept.splitlines(True), made.splitlines(True), GENERATED[name],
        f"paceline docs {name}"))
    assert kept == made, (f"write it anew: paceline docs {name} > "
                          f"{GENERATED[name]}\n{differences}")


def test_manual_page_has_no_troff_warnings(cli):
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    page = cli.ok("docs", "man").out
    done = subprocess.run([groff, "-man", "-Tascii", "-ww"], input=page,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "EXIT STATUS" in re.sub(".\b", "", done.stdout)


def flags_in(text):
    return set(re.findall(r"--([a-z][a-z0-9-]*)", text))


def test_help_of_every_command(cli):
    top = cli.ok("--help")
    commands = re.findall(r"^  ([a-z]+) ", top.out, re.M)
    assert {"train", "eval", "predict", "models", "data", "keys",
            "docs"} <= set(commands)
    for command in commands:
        for flag in "--help", "-h":
            result = cli.ok(command, flag)
            assert f"usage: paceline {command}" in result.out
            assert result.err == ""
    assert cli.ok("help").out == cli.ok("-h").out == top.out
    assert list(cli.folder.iterdir()) == []


def test_help_mentions_each_flag(cli):
    options = cli.ok("docs", "options").out
    train = flags_in(options.split("\n## `paceline ")[1])
    assert {"batch", "lr", "resume", "json", "kernels"} <= train
    assert train <= flags_in(cli.ok("train", "--help", "all").out)
    sparse = flags_in(cli.ok("train", "sparse", "--help", "all").out)
    dense = flags_in(cli.ok("train", "softmax", "--help", "all").out)
    assert train <= dense | sparse
    assert {"l1", "features", "hogwild", "skip-bad"} <= sparse - dense
    assert {"clip", "examples", "cache"} <= dense
    for args in (["train", "softmax", "--batch", "5", "--help", "all"],
                 ["models", "softmax", "--help", "all"]):
        assert dense == flags_in(cli.ok(*args).out), args
    assert {"data", "threads", "json"} <= flags_in(
        cli.ok("eval", "r", "--help", "all").out)
    assert {"top", "threads", "json"} <= flags_in(
        cli.ok("predict", "--help", "all").out)
    assert {"out", "threads"} <= flags_in(
        cli.ok("data", "digits", "--help", "all").out)
    pages = [cli.ok("docs", "man", command).out
             for command in cli.ok("docs", "commands").out.split()]
    assert flags_in(options) <= flags_in(
        "".join(pages).replace("\\-", "-").replace("\\fR", " "))


def test_help_has_the_defaults_of_the_model(cli):
    for model, batch in ("softmax", 100), ("lenet", None):
        text = " ".join(cli.ok("train", model, "--help", "all").out.split())
        assert "the model's" not in text
        found = re.search(r"--batch N examples per gradient \[(\d+)\]", text)
        assert found and (batch is None or int(found[1]) == batch), text
        assert " glorot or he [" in text
    assert "examples per gradient [the model's]" in " ".join(
        cli.ok("train", "--help").out.split())


def test_help_of_a_dense_model_has_no_flags_of_sparse_ones(cli):
    flags = ["--l1 ", "--l2 ", "--hogwild ", "--traffic ", "--features "]
    pages = [cli.ok("train", model, "--help", "all").out
             for model in ("softmax", "sparse")]
    assert [flag for flag in flags if flag in pages[0]] == []
    assert [flag for flag in flags if flag in pages[1]] == flags


def test_help_fits_80_columns(cli):
    for args in (["train", "--help"], ["eval", "--help"], ["data", "--help"],
                 ["predict", "--help"], ["models", "--help"],
                 ["docs", "--help"]):
        for line in cli.ok(*args).out.splitlines():
            assert len(line) <= 80, line


def test_version(cli):
    result = cli.ok("--version")
    assert re.match(r"paceline \d+\.\d+\.\d+( \(commit \w+\))?\n", result.out)
