"""Blocks of a Markdown page: Python, and what it prints."""

import contextlib
import io
import re

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.M | re.S)


def blocks(page):
    """(line, code, expected output or None) of each block, in order."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        yield text.count("\n", 0, found.start()) + 2, found[1], found[2]


def run_blocks(page, optional):
    """Run the blocks in one namespace; the numbers of those that ran and not.

    With `optional` a block whose imports are not installed is skipped.
    """
    names, ran, missing = {"__name__": "page"}, 0, 0
    for line, code, expected in blocks(page):
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * (line - 1) + code, page, "exec"), names)
        except ImportError:
            if not optional:
                raise
            missing += 1
            continue
        ran += 1
        if expected is not None:
            assert out.getvalue() == expected, f"{page}:{line}"
    return ran, missing
