"""The package as it is installed: its types, and a wheel built by pip."""

import ast
import os
import pathlib
import re
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]

USE = """
import numpy as np, pathlib, paceline
from paceline import _launch, _library
home = pathlib.Path(paceline.__file__).parent
assert "site-packages" in str(home), home
assert pathlib.Path(_library.library()._name).parent == home / "_lib"
assert pathlib.Path(_launch.program()).parent == home / "_lib"
x = np.random.default_rng(1).normal(size=(300, 4)).astype("f")
run = paceline.train("softmax", (x, (x[:, 0] > 0).astype("i")), epochs=5, batch=30)
assert (run.predict(x) == (x[:, 0] > 0)).mean() > 0.9
"""


def test_types_are_consistent():
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull],
                          cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_oldest_python_reads_the_package():
    settings = (ROOT / "pyproject.toml").read_text()
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', settings)[1]
    for path in (ROOT / "python/paceline").glob("*.py"):
        ast.parse(path.read_text(), path, feature_version=(3, int(oldest)))


def test_readme_names_what_the_build_needs():
    setup = (ROOT / "tools/setup.sh").read_text()
    packages = re.search(r'build_packages="(.*?)"', setup, re.S)[1].split()
    command = re.search(r"apt-get install (.*?)\n\n",
                        (ROOT / "python/README.md").read_text(), re.S)[1]
    assert command.replace("\\", "").split() == packages


def test_wheel_of_the_source_distribution_works(tmp_path):
    plain = {name: value for name, value in os.environ.items()
             if name not in ("PACELINE", "PACELINE_LIBRARY", "PYTHONPATH")}
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "-o", tmp_path,
                    ROOT], check=True, env=plain, stdout=subprocess.DEVNULL)
    wheel, = tmp_path.glob("paceline-*-py3-none-linux_*.whl")
    venv.create(tmp_path / "venv", system_site_packages=False, with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", wheel],
                   check=True, env=plain)
    # NumPy is that of the tests.
    numpy = pathlib.Path(__import__("numpy").__file__).parents[1]
    subprocess.run([python, "-c", f"import sys; sys.path.append({str(numpy)!r})\n"
                    + USE], check=True, env=plain, cwd=tmp_path)
