"""All blocks of docs/python.md, and the notebook of examples/."""

import pathlib

from pages import run_blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_all_blocks_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, missing = run_blocks(ROOT / "docs" / "python.md", optional=False)
    assert missing == 0


def test_notebook_runs(tmp_path):
    import nbclient
    import nbformat
    notebook = nbformat.read(ROOT / "examples" / "first_steps.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells
               for output in cell.get("outputs", [])]
    assert any("<polyline" in output.get("data", {}).get("text/html", "")
               for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
