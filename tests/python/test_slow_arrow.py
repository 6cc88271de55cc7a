"""Tables of pyarrow, polars and pandas through the Arrow C data interface."""

import numpy as np
import pytest

import paceline
from conftest import until_sampled
from paceline import Data, _arrow
from paceline._data import as_data

pyarrow = pytest.importorskip("pyarrow")


def table_of(clouds):
    x, y = clouds
    columns = {f"x{i}": x[:, i] for i in range(x.shape[1])}
    return pyarrow.table({**columns, "y": y})


def makers():
    import pandas
    import polars
    yield "pyarrow", lambda table: table
    yield "batches", lambda table: pyarrow.RecordBatchReader.from_batches(
        table.schema, table.to_batches(max_chunksize=70))
    yield "batch", lambda table: table.combine_chunks().to_batches()[0]
    yield "polars", polars.from_arrow
    yield "pandas", lambda table: table.to_pandas()
    assert pandas.__version__


@pytest.mark.parametrize("name, make", list(makers()))
def test_tables_become_rows(clouds, name, make):
    data = as_data(make(table_of(clouds)), label="y")
    features, labels = data._keep[:2]
    assert np.array_equal(features, clouds[0])
    assert np.array_equal(labels, clouds[1])


def test_training_on_a_table_is_that_on_arrays(clouds):
    same = {"steps": 30, "batch": 30, "progress": False}
    runs = [paceline.train("softmax", clouds, **same),
            paceline.train("softmax", table_of(clouds), label="y", **same)]
    assert runs[0].summary["parameters_sha256"] == \
        runs[1].summary["parameters_sha256"]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32",
                                  "uint32", "int64", "uint64", "float32",
                                  "float64", "bool"])
def test_numbers_of_all_kinds_and_slices(kind):
    values = np.arange(20).astype(kind)
    table = pyarrow.table({"a": values, "b": values[::-1].copy()}).slice(3, 11)
    features, labels = _arrow.examples(table, "b")
    assert np.array_equal(features[:, 0], values[3:14].astype(np.float32))
    assert np.array_equal(labels, values[::-1][3:14])


def test_sliced_batch_keeps_its_offset():
    batch = pyarrow.record_batch({"a": np.arange(10.0), "b": np.arange(10)})
    features, labels = _arrow.examples(batch.slice(4, 3), "b")
    assert features[:, 0].tolist() == [4, 5, 6] and labels.tolist() == [4, 5, 6]


def test_fixed_lists_are_images():
    pixels = pyarrow.array(np.arange(48, dtype=np.uint8))
    images = pyarrow.FixedSizeListArray.from_arrays(pixels, 12)
    table = pyarrow.table({"image": images, "y": [0, 1, 0, 1]})
    features, labels = _arrow.examples(table.slice(1), "y")
    assert features.dtype == np.uint8
    assert np.array_equal(features, np.arange(48).reshape(4, 12)[1:])
    assert labels.tolist() == [1, 0, 1]


def test_labels_may_be_an_arrow_array(clouds):
    for labels in (pyarrow.array(clouds[1]), pyarrow.chunked_array([clouds[1]])):
        assert np.array_equal(as_data((clouds[0], labels))._keep[1], clouds[1])


@pytest.mark.parametrize("table, label, error, sentence", [
    ({"a": [1.0, None], "y": [0, 1]}, "y", ValueError, "1 missing value"),
    ({"a": ["x", "z"], "y": [0, 1]}, "y", TypeError, "column 'a'"),
    ({"a": [1.0, 2.0]}, "y", ValueError, "no column 'y'; there are a"),
    ({"y": [0, 1]}, "y", ValueError, "without columns"),
    ({"a": pyarrow.array([], "float32")}, None, ValueError, "without rows"),
])
def test_wrong_tables_are_refused_with_a_sentence(table, label, error, sentence):
    with pytest.raises(error, match=sentence):
        _arrow.examples(pyarrow.table(table), label)


def test_parquet_is_read_by_row_groups(clouds, tmp_path):
    from pyarrow import parquet
    parquet.write_table(table_of(clouds), tmp_path / "clouds.parquet",
                        row_group_size=100)
    features, labels = Data.parquet(tmp_path / "clouds.parquet", "y")._keep[:2]
    assert np.array_equal(features, clouds[0])
    assert np.array_equal(labels, clouds[1])


def test_failure_of_a_producer_is_raised():
    def batches():
        yield pyarrow.record_batch({"a": [1.0]})
        raise OSError("the disk is gone")

    reader = pyarrow.RecordBatchReader.from_batches(
        pyarrow.schema({"a": "float64"}), batches())
    with pytest.raises(ValueError, match="the disk is gone"):
        _arrow.examples(reader, None)


def test_runs_are_frames(clouds, tmp_path):
    run = until_sampled(tmp_path / "run", clouds)
    frame = run.to_frame()
    assert list(frame) == ["task", "name", "step", "time", "value"]
    loss = frame[(frame.name == "loss") & (frame.task == "worker-0")]
    assert loss.value.tolist() == run.scalar("loss").value.tolist()
    used = run.to_frame(resources=True)
    assert list(used)[0] == "host" and (used.name == "job_rss_mb").any()
    assert len(used) == sum(len(s.value) for s in run.resources.values())
