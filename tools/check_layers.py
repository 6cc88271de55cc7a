#!/usr/bin/env python3
"""Check the layer rule of docs/conventions.md by reading #include lines.

usage: check_layers.py [REPO]      exit 1 and one line per breach, else silent

A file under src/<module>/ (or the public header include/paceline/<module>.h)
may include its own module and the modules its row names, nothing else.
"""
import pathlib
import re
import sys

MAY_INCLUDE = {  # a module: the modules below it, lowest last
    "base":    [],
    "tensor":  ["base"],
    "proto":   ["base"],
    "net":     ["base"],
    "kernels": ["tensor", "base"],
    "data":    ["proto", "tensor", "base"],
    "graph":   ["kernels", "tensor", "base"],
    "nn":      ["graph", "proto", "tensor", "base"],
    "state":   ["tensor", "base"],
    "train":   ["state", "nn", "graph", "data", "kernels", "tensor", "base"],
    "job":     ["net", "base"],
    "sync":    ["job", "train", "net", "state", "kernels", "tensor", "base"],
    "matmul":  ["job", "net", "kernels", "tensor", "base"],
    "observe": ["net", "proto", "base"],
    "app":     ["matmul", "sync", "job", "observe", "train", "state", "nn",
                "graph", "kernels", "data", "net", "proto", "tensor", "base"],
    "cli":     ["app", "matmul", "sync", "job", "observe", "train", "state",
                "nn", "graph", "kernels", "data", "net", "proto", "tensor",
                "base"],
}
CONFINED = {  # an outside header: the only folder that may include it
    r"(oneapi/dnnl/)?dnnl": "kernels/cpu/",
    r"(cuda|cublas|cudnn)": "kernels/cuda/",
    r"(sodium|microhttpd)\.h|openssl/.*": "net/",
    r"curl/":               "net/http/",
    r"mpi\.h":              "sync/allreduce/mpi/",
    r"pthread\.h":          "base/",
    r"jansson\.h":          "base/json/",
    r"zstd\.h":             "data/",
    r"protobuf-c/|.*\.pb-c\.h": "proto/",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def module_of(path):
    """The module an include path belongs to, or None for an outside header."""
    parts = path.split("/")
    if parts[0] == "paceline" and len(parts) > 1:
        return parts[1].removesuffix(".h")
    return parts[0] if len(parts) > 1 and parts[0] in MAY_INCLUDE else None


def breaches(root):
    files = [(f, f.relative_to(root / "src").parts[0], f.relative_to(root / "src"))
             for f in (root / "src").rglob("*.[ch]*")]
    files += [(f, f.stem, f.name)
              for f in (root / "include" / "paceline").glob("*.h")]
    for file, module, where in sorted(files):
        if module not in MAY_INCLUDE:
            yield f"{file}: folder {module!r} has no row in the layer table"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            ours = found[1] == '"' or found[2].startswith("paceline/")
            target = module_of(found[2]) if ours else None
            if target and target != module and target not in MAY_INCLUDE[module]:
                yield f"{file}:{number}: {module} must not include {target}"
            for header, home in CONFINED.items():
                if re.match(header, found[2]) and not target \
                        and not str(where).startswith(home):
                    yield f"{file}:{number}: <{found[2]}> belongs in src/{home}"


if __name__ == "__main__":
    found = list(breaches(pathlib.Path(sys.argv[1] if sys.argv[1:] else ".")))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
