"""Shared by the tests of the Python package: small data that can be
learned."""

import signal

import numpy as np
import pytest

import paceline

# A shell that runs the tests in the background lets them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Csr:
    """What the package uses of scipy.sparse.csr_matrix."""

    format = "csr"

    def __init__(self, dense, index=np.int32):
        rows, columns = np.nonzero(dense)
        self.shape = dense.shape
        counts = np.bincount(rows, minlength=len(dense))
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
        self.indices = columns.astype(index)
        self.data = dense[rows, columns].astype(np.float32)

    def tocsr(self):
        return self


@pytest.fixture(scope="session")
def clouds():
    """Three clouds of points with their labels: (x [900, 8], y)."""
    random = np.random.default_rng(7)
    y = np.arange(900, dtype=np.int32) % 3
    centers = random.normal(size=(3, 8)) * 3
    x = centers[y] + random.normal(size=(900, 8))
    return x.astype(np.float32), y


@pytest.fixture(scope="session")
def clicks():
    """Sparse rows and labels 0 and 1: (Csr [1000, 50], y)."""
    random = np.random.default_rng(8)
    dense = (random.random((1000, 50)) < 0.1).astype(np.float32)
    y = (dense[:, :25].sum(axis=1) > dense[:, 25:].sum(axis=1)).astype(np.int32)
    return Csr(dense), y


def until_sampled(folder, data):
    """A run that ended after the resources of the host had been recorded."""
    def sampled(_):
        try:
            return bool(paceline.Run(folder).resources)
        except paceline.Error:  # not yet a run
            return False
    return paceline.train("softmax", data, run=folder, steps=100_000_000,
                          batch=30, record_every=1000, monitor_every=1,
                          progress=False, callbacks=sampled)
