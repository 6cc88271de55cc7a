#!/usr/bin/env python3
"""Make the golden files of safetensors and checkpoints, without our code.

usage: make_golden.py [FOLDER]     writes into FOLDER (default: its own)

The files are in the repository; tests compare what the C code writes with
them, and read them.  A changed format gets new files, these remain.
"""
import json
import pathlib
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def safetensors(tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, dtype, shape, bytes_ in tensors:
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def manifest(shard_name, shard):
    text = json.dumps({
        "format": "paceline-checkpoint", "version": 1, "model": "softmax",
        "step": 42,
        "settings": {"batch": 32, "optimizer": "sgd", "seed": 7},
        "state": {"position": "2a00", "loss": 0.1, "workers": [1, 2]},
        "files": [{"name": shard_name, "bytes": len(shard),
                   "crc32c": f"{crc32c(shard):08x}"}],
    }, indent=2).removesuffix("\n}")
    return f'{text},\n  "manifest_crc32c": "{crc32c(text.encode()):08x}"\n}}\n'


def main(folder):
    (folder / "small.safetensors").write_bytes(safetensors([
        ("layer.weight", "F32", [2, 3], floats(0, 1.5, -2, 0.25, 1e-3, 3e8)),
        ("empty", "F32", [0, 4], b""),
        ("ids", "I64", [2], struct.pack("<2q", -1, 1 << 40)),
        ("scale", "F32", [], floats(0.5)),
        ("rows", "I32", [1, 2], struct.pack("<2i", 7, -7)),
        ("pixels", "U8", [3], bytes([0, 128, 255])),
    ], {"format": "pt", "note": "gr\u00fc\u00df"}))

    name = "shard-00000-of-00001.safetensors"
    shard = safetensors([
        ("weight", "F32", [2, 3], floats(42, 43, 44, 45, 46, 47)),
        ("bias", "F32", [3], floats(84, 85, 86)),
    ], {"format": "pt"})
    step = folder / "checkpoint" / "step-0000000042"
    step.mkdir(parents=True, exist_ok=True)
    (step / name).write_bytes(shard)
    (step / "manifest.json").write_text(manifest(name, shard))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if sys.argv[1:]
         else pathlib.Path(__file__).parent)
