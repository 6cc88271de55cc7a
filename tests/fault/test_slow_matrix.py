"""The whole fault matrix, with the default silence that means lost."""

import pytest

import cells


@pytest.fixture(scope="module")
def outcomes(run_cells):
    return run_cells(cells.MATRIX, cells.FULL)


@pytest.mark.parametrize("cell", cells.MATRIX, ids=lambda cell: cell.name)
def test_a_disturbed_job_ends_correctly(outcomes, cell):
    assert "WRONG" not in outcomes[cell]
