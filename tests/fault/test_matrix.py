"""The fast part of the fault matrix: each fault, each role and each mode at
least once, with a silence of one second that means lost."""

import pytest

import cells
from cells import Cell

CELLS = [
    Cell("kill", "worker", "sync"), Cell("kill", "chief", "sync"),
    Cell("kill", "ps", "sync"), Cell("kill", "evaluator", "async"),
    Cell("freeze", "worker", "async"), Cell("freeze", "ps", "sync"),
    Cell("freeze", "chief", "ssp"), Cell("cut", "worker", "sync"),
    Cell("cut", "ps", "ssp"), Cell("disk", "chief", "sync"),
    Cell("disk", "ps", "async"), Cell("kill", "worker", "sync", "abort"),
]


@pytest.fixture(scope="module")
def outcomes(run_cells):
    return run_cells(CELLS, cells.FAST)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_disturbed_job_ends_correctly(outcomes, cell):
    assert "WRONG" not in outcomes[cell]
