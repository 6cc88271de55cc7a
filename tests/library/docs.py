#!/usr/bin/env python3
"""Compile and run the programs of a document.

usage: docs.py DOCUMENT INCLUDE LIBRARY COMPILER [FLAG...]

A program is a fenced block of C that begins with the comment "name.c - ...";
the fenced text behind it is what it prints.  Numbers are compared, too.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = re.compile(r"^```c\n(/\* (\w+)\.c - .*?)^```\n\s*^```text\n(.*?)^```$",
                     re.M | re.S)


def main(document, include, library, compiler, *flags):
    """Run all programs; the number of those that failed."""
    programs = PROGRAM.findall(pathlib.Path(document).read_text())
    assert len(programs) >= 5, f"{document}: only {len(programs)} programs"
    folder = pathlib.Path(library).parent
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for text, name, expected in programs:
            source = pathlib.Path(work, f"{name}.c")
            source.write_text(text)
            binary = str(source.with_suffix(""))
            subprocess.run(
                [compiler, *flags, "-std=c11", "-Wall", "-Wextra", "-Werror",
                 f"-I{include}", "-o", binary, str(source), library, "-lm",
                 f"-Wl,-rpath,{folder.resolve()}"], check=True)
            done = subprocess.run([binary], cwd=work, capture_output=True,
                                  text=True, env={**os.environ,
                                                  "TMPDIR": work})
            if done.returncode or done.stderr or done.stdout != expected:
                print(f"{name}.c: exit status {done.returncode}\n"
                      f"{done.stderr}printed:\n{done.stdout}"
                      f"expected:\n{expected}")
                failed += 1
            left = [p.name for p in pathlib.Path(work).iterdir() if p.is_dir()]
            if left:
                print(f"{name}.c: left {left} behind")
                failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
