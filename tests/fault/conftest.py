"""Shared by the fault tests: cells that run side by side, and the table of
their results, printed at the end and written to FAULT_TABLE."""

import concurrent.futures
import os
import pathlib
import queue
import shutil

import pytest

import cells
import netns

JOBS = 6  # cells at the same time: most of the time they wait
SEED = int(os.environ.get("FAULT_SEED", "1"))
TABLE = pytest.StashKey()


def run_cell(cell, pace, networks, base, sha):
    folder = base / cell.name
    folder.mkdir()
    net = networks.get()
    try:
        outcome = cells.run(cell, SEED, pace, net, folder, sha)
        shutil.rmtree(folder)
        return outcome
    except cells.Wrong as error:
        return f"WRONG: {error}"
    finally:
        networks.put(net)


@pytest.fixture(scope="session")
def run_cells(tmp_path_factory, pytestconfig):
    """A function that runs cells and returns {cell: result}."""
    reason = netns.why_not()
    if reason is not None:
        pytest.skip(reason)

    def run(chosen, pace):
        base = tmp_path_factory.mktemp("cells")
        sha = cells.undisturbed(pace, base)
        netns.remove_leftovers()
        made = [netns.Network(i, cells.HOSTS)
                for i in range(min(JOBS, len(chosen)))]
        networks = queue.Queue()
        for net in made:
            networks.put(net)
        try:
            with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
                found = pool.map(lambda cell: run_cell(
                    cell, pace, networks, base, sha), chosen)
                outcomes = dict(zip(chosen, found))
        finally:
            for net in made:
                net.close()
        pytestconfig.stash[TABLE] = cells.table(outcomes)
        if "FAULT_TABLE" in os.environ:
            pathlib.Path(os.environ["FAULT_TABLE"]).write_text(
                cells.table(outcomes) + "\n")
        return outcomes
    return run


def pytest_terminal_summary(terminalreporter, config):
    if TABLE in config.stash:
        terminalreporter.section(f"fault matrix, seed {SEED}")
        terminalreporter.write_line(config.stash[TABLE])
