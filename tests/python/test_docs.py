"""The blocks of docs/python.md that need NumPy alone."""

import pathlib

from pages import run_blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_blocks_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran, _ = run_blocks(ROOT / "docs" / "python.md", optional=True)
    assert ran >= 5
