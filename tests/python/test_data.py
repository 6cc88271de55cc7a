"""Examples from arrays: what is taken, what is read in place, what is refused."""

import numpy as np
import pytest

import paceline
from conftest import Csr
from paceline import Data
from paceline._data import as_data


def test_dense_array_is_read_in_place(clouds):
    x, y = clouds
    data = Data.dense(x, y)
    assert data._keep[0] is x and data._keep[1] is y
    assert (data.rows, data.example, data.classes) == (900, (8,), 3)


def test_images_keep_their_shape_and_bytes():
    images = np.zeros((5, 3, 4, 4), np.uint8)
    data = Data.dense(images, np.arange(5))
    assert data._keep[0] is images
    assert data.example == (3, 4, 4) and data.classes == 5


def test_strided_rows_are_read_in_place(clouds):
    rows = clouds[0][::3]
    assert Data.dense(rows)._keep[0] is rows


@pytest.mark.parametrize("change", [
    lambda x: x.astype(np.float64),
    lambda x: np.asfortranarray(x),
    lambda x: x[:, ::2],
    lambda x: x[::-1],
    lambda x: x.astype(">f4"),
    lambda x: x.tolist(),
])
def test_other_arrays_are_copied_to_float32(clouds, change):
    data = as_data((change(clouds[0]), clouds[1]))
    assert data._keep[0].dtype == np.float32
    assert np.array_equal(data._keep[0], np.asarray(change(clouds[0]), np.float32))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr_is_read_in_place(clicks, index):
    matrix = Csr(np.eye(4, 6), index)
    data = as_data((matrix, [0, 1, 0, 1]))
    assert data._keep[0] is matrix.indptr and data._keep[1] is matrix.indices
    assert data._keep[2] is matrix.data
    assert (data.rows, data.columns, data.sparse) == (4, 6, True)


@pytest.mark.parametrize("features, labels, sentence", [
    (np.zeros((3, 2)), [0, 1], "one for each example"),
    (np.zeros((3, 2)), [0, 1, 0.5], "whole numbers"),
    (np.zeros((3, 2)), [0, 1, -1], "from 0"),
    (np.zeros((3, 2)), ["a", "b", "c"], "whole numbers"),
    (np.zeros(3), None, "rows"),
    (np.zeros((0, 2)), None, "at least one row"),
    (np.array([["a"]]), None, "expected numbers"),
    (np.zeros((1, 1, 1, 1, 1, 1, 1)), None, "at most 5"),
])
def test_wrong_arrays_are_refused_with_a_sentence(features, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        Data.dense(features, labels)


def test_library_refuses_an_index_out_of_range():
    matrix = Csr(np.eye(4, 6))
    matrix.indices[2] = 6
    with pytest.raises(paceline.UsageError, match="row 2"):
        Data.csr(matrix, [0, 1, 0, 1])


def test_label_names_a_column_of_a_table_only(clouds):
    with pytest.raises(TypeError, match="pair"):
        as_data(clouds, label="y")


def test_function_makes_examples(clouds):
    x, y = clouds
    data = Data.from_function(lambda n: (x[n], y[n]), 900, (8,), 3)
    run = paceline.train("softmax", data, steps=30, batch=30)
    same = paceline.train("softmax", (x, y), steps=30, batch=30)
    assert np.array_equal(run.weights["softmax/weights"],
                          same.weights["softmax/weights"])


def test_failure_of_a_function_is_raised():
    def make(numbers):
        raise LookupError("no such example")

    data = Data.from_function(make, 100, (8,), 3)
    with pytest.raises(LookupError, match="no such example"):
        paceline.train("softmax", data, steps=5, batch=10)


@pytest.mark.parametrize("labels, sentence", [
    (np.eye(3)[[0, 1, 2]], "argmax"),
    (["a", "b", "c"], "numpy.unique"),
    ([-1, 1, 1], "row 0 has the label -1"),
    ([0, 1, np.nan], "row 2 has the label nan"),
    (np.ma.masked_array([0, 1, 1], [0, 0, 1]), "masked"),
])
def test_wrong_labels_are_refused_with_their_cure(labels, sentence):
    with pytest.raises(paceline.UsageError, match=sentence):
        Data.dense(np.zeros((3, 2)), labels)


def test_labels_may_be_a_column(clouds):
    x, y = clouds
    assert np.array_equal(Data.dense(x, y[:, None])._keep[1], y)


def test_a_source_string_is_refused_as_examples():
    with pytest.raises(TypeError, match="npy:x.npy"):
        as_data("npy:x.npy")
