"""The estimators inside scikit-learn: its own checks, pipelines, searches."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (mean_absolute_error, r2_score,
                             root_mean_squared_error)
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from paceline import (Conv2D, Dense, Flatten, MaxPool, NetworkClassifier,
                      NetworkRegressor, ReLU, Sequential, SoftmaxClassifier,
                      SparseLogisticRegression)


def weights_are_not_repetition(_):
    """As of scikit-learn's own SGDClassifier: which rows share a batch is
    another matter when a row is repeated."""
    return {f"check_sample_weight_equivalence_on_{kind}_data": "mini-batches"
            for kind in ("dense", "sparse")}


@parametrize_with_checks([
    SoftmaxClassifier(threads=1),
    SparseLogisticRegression(threads=1),
    NetworkClassifier(threads=1),
    NetworkRegressor(threads=1),
], expected_failed_checks=weights_are_not_repetition)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    return x.astype(np.float32) / 16, y


def test_softmax_is_as_accurate_as_logistic_regression(digits):
    x, y = digits
    ours = SoftmaxClassifier(lr=0.5, random_state=1).fit(x[:1200], y[:1200])
    theirs = LogisticRegression(max_iter=2000).fit(x[:1200], y[:1200])
    assert ours.score(x[1200:], y[1200:]) > theirs.score(x[1200:], y[1200:]) - 0.02


def test_network_of_images_in_a_pipeline(digits):
    x, y = digits
    net = Sequential([Conv2D(8, 3), ReLU(), MaxPool(2), Flatten(), Dense()],
                     name="digits8")
    model = make_pipeline(
        StandardScaler(),
        NetworkClassifier(net, shape=(8, 8), lr=0.003, random_state=1))
    model.fit(x[:1200], y[:1200])
    assert model.score(x[1200:], y[1200:]) > 0.92
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(x), model.predict_proba(x))


def test_regression_is_as_close_as_least_squares():
    random = np.random.default_rng(1)
    x = random.normal(size=(1000, 6)).astype(np.float32)
    y = x @ random.normal(size=(6, 2)) + 3 + 0.1 * random.normal(size=(1000, 2))
    model = NetworkRegressor(Sequential([Dense()]), random_state=1)
    theirs = LinearRegression().fit(x[:800], y[:800])
    ours = pickle.loads(pickle.dumps(model.fit(x[:800], y[:800])))
    assert ours.predict(x[800:]).shape == (200, 2)
    assert ours.score(x[800:], y[800:]) > theirs.score(x[800:], y[800:]) - 0.01
    test = ours.run_.evaluate((x[800:], y[800:]))
    predicted = ours.predict(x[800:])
    assert test["r2"] == pytest.approx(r2_score(y[800:], predicted), abs=1e-5)
    assert test["mae"] == pytest.approx(
        mean_absolute_error(y[800:], predicted), rel=1e-5)
    assert test["rmse"] == pytest.approx(
        root_mean_squared_error(y[800:], predicted), rel=1e-5)


def rows_with_weights():
    random = np.random.default_rng(1)
    x = random.normal(size=(400, 6)).astype(np.float32)
    y = (x[:, 0] + 0.5 * random.normal(size=400) > 0).astype(int)
    return x, y, random.integers(0, 4, 400)


@pytest.mark.parametrize("make", [
    lambda batch: SoftmaxClassifier(batch=batch, lr=0.5),
    lambda batch: SparseLogisticRegression(batch=batch, lr=0.5, optimizer="sgd"),
    lambda batch: SparseLogisticRegression(
        batch=batch, lr=0.5, optimizer="sgd",
        flags={"workers": 1, "ps": 1, "threads": 1}),
], ids=["softmax", "sparse", "sparse on a server"])
def test_weight_of_a_row_is_how_often_it_counts(make):
    x, y, weight = rows_with_weights()
    again = np.repeat(np.arange(400), weight)
    whole = make(400).set_params(epochs=50).fit(x, y, sample_weight=weight)
    repeated = make(len(again)).set_params(epochs=50).fit(x[again], y[again])
    assert whole.coef_ == pytest.approx(repeated.coef_, abs=1e-5)
    assert whole.intercept_ == pytest.approx(repeated.intercept_, abs=1e-5)
    alike = make(50).set_params(random_state=1)
    assert np.array_equal(alike.fit(x, y).coef_,
                          alike.fit(x, y, sample_weight=np.full(400, 8)).coef_)


def test_class_weights_are_those_of_its_rows():
    x, y, _ = rows_with_weights()
    few = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:30]])
    x, y = x[few], y[few]
    model = SoftmaxClassifier(random_state=1, lr=0.5)
    plain = model.fit(x, y).predict(x)
    even = clone(model).set_params(class_weight="balanced").fit(x, y).predict(x)
    assert (even[y == 1] == 1).mean() > (plain[y == 1] == 1).mean() + 0.1
    by_row = model.fit(x, y, sample_weight=np.where(y == 1, (y == 0).sum() / 30, 1))
    assert np.array_equal(by_row.predict(x), even)


def test_grid_search_in_processes(digits):
    x, y = digits
    search = GridSearchCV(SoftmaxClassifier(epochs=3, threads=1, random_state=1),
                          {"lr": [1e-6, 0.5]}, cv=2, n_jobs=2)
    search.fit(x[:600], y[:600])
    assert search.best_params_ == {"lr": 0.5}


def test_networks_are_cross_validated_in_processes(digits):
    x, y = digits
    scores = cross_val_score(
        NetworkClassifier(Sequential([Dense(32), ReLU(), Dense()]), epochs=60,
                          threads=1, random_state=1), x[:600], y[:600],
        cv=2, n_jobs=2)
    assert scores.min() > 0.8


def test_clone_keeps_parameters():
    model = SparseLogisticRegression(l1=0.1, optimizer="ftrl", flags={"warmup": 3})
    assert clone(model).get_params() == model.get_params()


def sparse_task(classes, seed=2):
    random = np.random.default_rng(seed)
    dense = (random.random((1500, 60)) < 0.15).astype(np.float32)
    y = (dense @ random.normal(size=(60, classes))).argmax(axis=1)
    return csr_matrix(dense), np.array(["a", "b", "c", "d"])[y]


@pytest.mark.parametrize("classes", [2, 4])
def test_sparse_rows_are_classified(classes):
    x, y = sparse_task(classes)
    model = SparseLogisticRegression(lr=0.3, random_state=1)
    model.fit(x[:1000], y[:1000])
    assert model.score(x[1000:], y[1000:]) > 0.8
    assert model.coef_.shape == ((1 if classes == 2 else classes), 60)
    odds = model.predict_proba(x)
    assert np.allclose(odds.sum(axis=1), 1, atol=1e-5)
    assert np.array_equal(model.classes_[odds.argmax(axis=1)], model.predict(x))


@pytest.mark.parametrize("classes", [2, 4])
def test_partial_fits_continue(classes):
    x, y = sparse_task(classes)
    names = np.unique(y)
    model = SparseLogisticRegression(optimizer="sgd", lr=0.5, random_state=1)
    model.partial_fit(x[:500], y[:500], classes=names)
    early = model.score(x[1000:], y[1000:])
    for _ in range(10):
        model.partial_fit(x[:500], y[:500]).partial_fit(x[500:1000], y[500:1000])
    assert model.score(x[1000:], y[1000:]) > max(early, 0.8)


def test_partial_fit_with_a_rate_of_0_keeps_the_weights():
    x, y = sparse_task(2)
    model = SparseLogisticRegression(optimizer="sgd", lr=0.5, random_state=1)
    before = model.fit(x, y).coef_.copy()
    model.set_params(lr=1e-12).partial_fit(x, y)
    assert np.allclose(model.coef_, before, atol=1e-6)


@pytest.mark.parametrize("model, arguments, sentence", [
    (SparseLogisticRegression(), {}, "needs all classes"),
    (SparseLogisticRegression(), {"classes": ["a", "z"]}, "not among"),
    (SparseLogisticRegression(optimizer="ftrl"), {"classes": ["a", "b"]}, "ftrl"),
])
def test_partial_fit_refuses_with_a_sentence(model, arguments, sentence):
    x, y = sparse_task(2)
    with pytest.raises(ValueError, match=sentence):
        model.partial_fit(x, y, **arguments)


def test_dense_and_sparse_rows_give_equal_weights():
    x, y = sparse_task(2)
    fits = [SparseLogisticRegression(random_state=1, epochs=2, threads=1).fit(rows, y)
            for rows in (x, csr_array(x), x.toarray(), x.tocsc())]
    for fit in fits[1:]:
        assert np.array_equal(fit.coef_, fits[0].coef_)


def test_l1_makes_weights_zero():
    x, y = sparse_task(2)
    counts = [np.count_nonzero(SparseLogisticRegression(
        optimizer="ftrl", lr=0.1, l1=l1, random_state=1).fit(x, y).coef_)
        for l1 in (0.0, 20.0)]
    assert counts[0] > 50 and counts[1] < 20


def test_text_in_a_pipeline():
    words = ["good fine great", "bad poor awful", "great good", "awful bad"] * 20
    model = make_pipeline(CountVectorizer(),
                          SparseLogisticRegression(lr=0.5, random_state=1))
    model.fit(words, [1, 0, 1, 0] * 20)
    assert model.predict(["fine good", "poor bad"]).tolist() == [1, 0]
