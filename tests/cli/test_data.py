"""Sparse data files: convert, stats, and one sentence for what is wrong."""

import gzip
import json

import pytest

TEXT = "1 1:1 5:0.5\n0 2:1\n0 3:1 900:1\n"


@pytest.fixture
def svm(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(TEXT)
    return path


def test_convert_goes_there_and_back(cli, svm, tmp_path):
    cache, back = tmp_path / "a.cache", tmp_path / "b.svm"
    result = cli.ok("data", "convert", f"libsvm:{svm}", f"cache:{cache}")
    assert "3 examples" in result.out
    cli.ok("data", "convert", f"cache:{cache}", f"libsvm:{back}")
    assert back.read_text() == TEXT


def test_stats_count_examples_labels_and_ids(cli, svm):
    text = cli.ok("data", "stats", f"libsvm:{svm}").out
    assert "examples    3" in text and "label 1     1 (33.33 %)" in text
    line = cli.ok("data", "stats", f"libsvm:{svm}", "--json").out
    stats = json.loads(line)
    assert stats["examples"] == 3 and stats["non_zeros"] == 5
    assert stats["features"] == 901 and stats["ones"] == 1
    assert {"id": 900, "count": 1} in stats["frequent"]


def test_packed_files_are_counted(cli, tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    result = cli.ok("data", "stats", f"libsvm:{path}", "--json",
                      "--cache", str(tmp_path / "unpacked"))
    assert json.loads(result.out)["examples"] == 3


@pytest.mark.parametrize("text, message", [
    ("1 1:1\n2 1:1\n", ":2:1: '2', expected a label"),
    ("1 -1:1\n", ":1:3: '-1:1'"),
    ("1 1:x\n", ":1:5: 'x', expected a finite number"),
    ("0 1:1\n-1 1:1\n", ":2:1: '-1'"),
    ("", "no examples"),
])
def test_bad_text_is_one_sentence(cli, tmp_path, text, message):
    path = tmp_path / "bad"
    path.write_text(text)
    cli.refused(1, "data", "stats", f"libsvm:{path}",
                says=[message, str(path)])


def test_bad_lines_are_passed_over_and_counted(cli, tmp_path):
    path = tmp_path / "bad"
    path.write_text("1 1:1\nx\n0 2:1\n")
    result = cli.ok("data", "stats", f"libsvm:{path}", "--skip-bad", "1",
                      "--json")
    stats = json.loads(result.out)
    assert stats["examples"] == 2 and stats["bad"] == 1
    assert ":2:1: 'x'" in result.err


def test_a_failed_conversion_leaves_nothing(cli, tmp_path):
    (tmp_path / "bad").write_text("1 1:1\nx\n")
    cli.refused(1, "data", "convert", f"libsvm:{tmp_path / 'bad'}",
                f"cache:{tmp_path / 'out'}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad", "work"]


def test_wrong_words_are_usage_errors(cli, svm):
    for words, message in [
            (["convert", f"libsvm:{svm}"], "convert SRC DST"),
            (["convert", f"libsvm:{svm}", "svm:x"], "cannot be written"),
            (["stats", "digits"], "dense examples"),
            (["stats", "libsvm"], "names no file")]:
        cli.refused(2, "data", *words, says=message)
    cli.refused(1, "data", "stats", f"libsvm:{svm}.no*", says="no file")
