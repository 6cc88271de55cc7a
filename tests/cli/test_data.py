"""Sparse data files: convert, stats, and one sentence for what is wrong."""

import gzip
import json
import re
import shutil
import subprocess

import pytest

TEXT = "1 1:1 5:0.5\n0 2:1\n0 3:1 900:1\n"


@pytest.fixture
def svm(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(TEXT)
    return path


def test_convert_round_trips(cli, svm, tmp_path):
    cache, back = tmp_path / "a.cache", tmp_path / "b.svm"
    result = cli.ok("data", "convert", f"libsvm:{svm}", f"cache:{cache}")
    assert "3 examples" in result.out
    cli.ok("data", "convert", f"cache:{cache}", f"libsvm:{back}")
    assert back.read_text() == TEXT


def unpacked(path):
    """What the system's own tools unpack."""
    tool = {".gz": "gzip", ".zst": "zstd"}[path.suffix]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    return subprocess.run([tool, "-dc", path], capture_output=True,
                          check=True).stdout


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("kind", ["libsvm", "tfrecord"])
def test_convert_compresses_by_the_name(cli, tmp_path, kind, ending):
    plain, packed = tmp_path / "a.data", tmp_path / f"a.data{ending}"
    size = ["--examples", "20000", "--features", "5000"]
    cli.ok("data", "convert", "synthetic-sparse", f"{kind}:{plain}", *size)
    cli.ok("data", "convert", "synthetic-sparse", f"{kind}:{packed}", *size)
    assert packed.stat().st_size < plain.stat().st_size / 1.5
    assert unpacked(packed) == plain.read_bytes()
    back = tmp_path / "back"
    cli.ok("data", "convert", f"{kind}:{packed}", f"{kind}:{back}")
    assert back.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_cache_is_not_compressed(cli, svm, ending):
    """Reported before a pass over the data, which does not exist."""
    for source in [f"libsvm:{svm}", "libsvm:none"]:
        cli.refused(2, "data", "convert", source, f"cache:a.cache{ending}",
                    says=[f"cache:a.cache{ending}: a cache file is read in "
                          "place", f"leave off the {ending}"])


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


def test_bad_lines_are_skipped_and_counted(cli, tmp_path):
    path = tmp_path / "bad"
    path.write_text("1 1:1\nx\n0 2:1\n")
    result = cli.ok("data", "stats", f"libsvm:{path}", "--skip-bad", "1",
                      "--json")
    stats = json.loads(result.out)
    assert stats["examples"] == 2 and stats["bad"] == 1
    assert ":2:1: 'x'" in result.err


@pytest.fixture
def records(cli, tmp_path):
    """Five records of the same length; (path, bytes of one)."""
    svm, path = tmp_path / "five.svm", tmp_path / "five.tfrecord"
    svm.write_text("1 1:1 5:1\n0 2:1 3:1\n" * 2 + "1 4:1 6:1\n")
    cli.ok("data", "convert", f"libsvm:{svm}", f"tfrecord:{path}")
    assert path.stat().st_size % 5 == 0
    return path, path.stat().st_size // 5


def damage(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def test_a_truncated_record_is_named(cli, records):
    path, size = records
    path.write_bytes(path.read_bytes()[:-3])
    cli.refused(1, "data", "stats", f"tfrecord:{path}",
                says=[str(path), "truncated", f"byte {4 * size}"])
    result = cli.ok("data", "stats", f"tfrecord:{path}", "--skip-bad", "1")
    assert "examples    4" in result.out and "malformed   1" in result.out


@pytest.mark.parametrize("part, message", [
    (20, "checksum"), (8, "the checksum of its length")])
def test_a_wrong_checksum_is_named(cli, records, part, message):
    path, size = records
    damage(path, 2 * size + part)
    cli.refused(1, "data", "stats", f"tfrecord:{path}",
                says=[f"{path}: record at byte {2 * size}", message])


def test_a_bad_record_is_skipped_in_training(cli, records):
    path, size = records
    damage(path, 2 * size + 20)
    train = ["train", "sparse", "--data", f"tfrecord:{path}", "--batch", "2",
             "--features", "7", "--quiet"]
    cli.refused(1, *train, says=f"record at byte {2 * size}")
    summary = cli.ok(*train, "--skip-bad", "2", "--json").json
    assert summary["bad_examples"] == 2  # of training and of test data
    assert summary["examples"] == 4
    text = cli.ok(*train, "--skip-bad", "2").out
    assert "malformed      2 examples skipped" in text
    cli.refused(1, *train, "--skip-bad", "0", says="checksum")


def test_a_damaged_cache_is_named(cli, svm, tmp_path):
    cache = tmp_path / "a.cache"
    cli.ok("data", "convert", f"libsvm:{svm}", f"cache:{cache}")
    good = cache.read_bytes()
    cache.write_bytes(good[:-1])
    cli.refused(1, "data", "stats", f"cache:{cache}",
                says=[str(cache), "truncated or damaged"])
    cache.write_bytes(good)
    damage(cache, 16 + 24)
    cli.refused(1, "data", "stats", f"cache:{cache}",
                says=f"{cache}: block at byte 16")


@pytest.mark.parametrize("kind", ["libsvm", "tfrecord", "criteo", "cache"])
def test_files_that_are_empty_or_missing(cli, tmp_path, kind):
    (tmp_path / "empty").touch()
    cli.refused(1, "data", "stats", f"{kind}:{tmp_path / 'empty'}",
                says=str(tmp_path / "empty"))
    cli.refused(1, "train", "sparse", "--data", f"{kind}:{tmp_path}/no-*",
                says=f"{tmp_path}/no-*")


@pytest.mark.parametrize("text, message", [
    ("1 7:1\n", ":1:3: id 7, expected ids below --features 7"),
    ("1 1:1\n0 1:1e999\n", ":2:5: '1e999', expected a finite number"),
    ("1 1:1\n0 1:1\n3 1:1\n", ":3:1: '3', expected a label"),
])
def test_training_refuses_bad_text(cli, tmp_path, text, message):
    path = tmp_path / "bad"
    path.write_text(text)
    cli.refused(1, "train", "sparse", "--data", f"libsvm:{path}",
                "--features", "7", "--batch", "1",
                says=f"{path}{message}")


def test_labels_of_minus_one_mean_zero(cli, tmp_path):
    minus, zero = tmp_path / "minus", tmp_path / "zero"
    minus.write_text("-1 1:1\n+1 2:1\n" * 20)
    zero.write_text("0 1:1\n1 2:1\n" * 20)
    hashes = {cli.ok("train", "sparse", "--data", f"libsvm:{path}", "--batch",
                     "8", "--json", "--quiet").json["parameters_sha256"]
              for path in (minus, zero)}
    assert len(hashes) == 1


def test_a_stream_says_what_it_reads(cli, tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1 5:1 7:1\n0 2:1 3:1 8:1\n" * 20000)
    logs = cli.ok("train", "sparse", "--data", f"libsvm:{path}",
                  "--shuffle-buffer", "1000").err
    assert "worker 0 of 1 reads 1" in logs
    assert "blocks in 1 file: 40000 of 40000 examples" in logs


def test_a_failed_conversion_leaves_nothing(cli, tmp_path):
    (tmp_path / "bad").write_text("1 1:1\nx\n")
    cli.refused(1, "data", "convert", f"libsvm:{tmp_path / 'bad'}",
                f"cache:{tmp_path / 'out'}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad", "work"]


def test_wrong_words_are_usage_errors(cli, svm):
    for words, message in [
            (["convert", f"libsvm:{svm}"], "convert SRC DST"),
            (["convert", f"libsvm:{svm}", "svm:x"], "cannot be written"),
            (["convert", "digits", "cache:x"], "npy:FILE,LABELS"),
            (["stats", "libsvm"], "does not name a file")]:
        cli.refused(2, "data", *words, says=message)
    cli.refused(1, "data", "stats", f"libsvm:{svm}.no*", says="no file")


def test_workers_share_one_file_fairly(cli, tmp_path):
    """Its blocks are dealt in turn, each to exactly one worker."""
    path = tmp_path / "a.svm"
    path.write_text("1 1:1 5:1 7:1\n0 2:1 3:1 8:1\n" * 20000)
    cli.ok("train", "sparse", "--data", f"libsvm:{path}", "--shuffle-buffer",
           "1000", "--workers", "2", "--ps", "1", "--run", "r", "--steps", "2")
    blocks, examples = [], []
    for worker in range(2):
        log = (cli.folder / f"r/log/worker-{worker}.log").read_text()
        found = re.search(rf"worker {worker} of 2 reads (\d+) of (\d+) blocks "
                          r"in 1 file: (\d+) of 40000 examples", log)
        assert found, log
        blocks.append(int(found[1]))
        examples.append(int(found[3]))
    assert sum(blocks) == int(found[2]) and abs(blocks[0] - blocks[1]) <= 1
    assert sum(examples) == 40000


def renumbered(cli, tmp_path):
    """Training data with ids by frequency, and test data numbered alike."""
    for name, text in [("train", "1 900:1 5:1\n0 900:1 7:1\n" * 20),
                       ("test", "1 5:1 900:0.5 6:1\n0 7:1\n")]:
        (tmp_path / name).write_text(text)
        out = cli.ok("data", "convert", f"libsvm:{tmp_path / name}",
                     f"cache:{tmp_path / name}.cache", "--renumber",
                     str(tmp_path / "map")).out
        assert ("left out" in out and ": 1\n" in out) == (name == "test")
    return f"cache:{tmp_path}/train.cache", f"cache:{tmp_path}/test.cache"


def test_ids_are_renumbered_by_frequency(cli, tmp_path):
    train, test = renumbered(cli, tmp_path)
    assert (tmp_path / "map").read_text().split("\n")[1:] == \
        ["900", "5", "7", ""]
    again, back = tmp_path / "again.cache", tmp_path / "back.svm"
    cli.ok("data", "convert", train, f"cache:{again}")  # keeps its mark
    assert again.read_bytes() == (tmp_path / "train.cache").read_bytes()
    warning = cli.ok("data", "convert", test, f"libsvm:{back}").err
    assert "which only a cache file can record" in warning
    assert back.read_text() == "1 1:1 0:0.5\n0 2:1\n"


def test_a_model_is_tested_on_ids_numbered_alike(cli, tmp_path):
    train, test = renumbered(cli, tmp_path)
    plain = f"libsvm:{tmp_path / 'test'}"
    flags = ["train", "sparse", "--data", train, "--batch", "4", "--quiet"]
    cli.refused(2, *flags, "--test-data", plain, "--features", "1000",
                says=[plain, "not renumbered", "--renumber"])
    cli.ok(*flags, "--test-data", test, "--run", "r")
    cli.ok("predict", "r", test)
    cli.ok("eval", "r")
    for words in (["predict", "r", plain], ["eval", "r", "--data", plain]):
        cli.refused(2, *words, says=["not renumbered", "--renumber"])


def test_renumber_refuses_what_it_cannot_keep(cli, tmp_path):
    train, _ = renumbered(cli, tmp_path)
    plain = f"libsvm:{tmp_path / 'train'}"
    for words, message in [
            ([plain, "libsvm:x", "--renumber", "m"], "needs cache:FILE"),
            ([train, "cache:x", "--renumber", "m"], "already been renumbered")]:
        cli.refused(2, "data", "convert", *words, says=message)
    assert not (cli.folder / "m").exists()
    (cli.folder / "bad").write_text("1\nx\n")
    cli.refused(1, "data", "convert", plain, "cache:x", "--renumber", "bad",
                says="bad:2: expected an id")
    cli.ok("data", "convert", plain, "cache:plain.cache")
    both = str(cli.folder / "*.cache")
    cli.ok("data", "convert", plain, "cache:numbered.cache", "--renumber",
           str(tmp_path / "map"))
    cli.refused(1, "data", "stats", f"cache:{both}",
                says="number their ids differently")


@pytest.mark.parametrize("words, says", [
    ("digits --out d --json", "--json is a flag of `data stats`"),
    ("get mnist --threads 2", "--threads has no effect with `data get`"),
    ("stats synthetic-sparse --skip-bad 2", "--skip-bad needs sparse data in"),
    ("stats libsvm:a --integers log", "--integers needs the source criteo:"),
    ("stats libsvm:a --renumber m", "--renumber is a flag of `data convert`"),
    ("convert libsvm:a cache:b --examples 5", "the source synthetic-sparse"),
    ("stat libsvm:a --json", "expected: data get mnist"),
])
def test_flags_of_another_verb_are_refused(cli, words, says):
    cli.refused(2, "data", *words.split(), says=says)
    assert list(cli.folder.iterdir()) == []
