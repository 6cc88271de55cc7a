"""Read TensorBoard event files with nothing but Python: protocol buffers as
dictionaries {field number: [values]}, checksums left to the unit tests.
"""

import pathlib
import struct


def fields(data):
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 2:
            length = varint()
            value = data[at:at + length]
            at += length
        else:
            size, form = (8, "<d") if kind == 1 else (4, "<f")
            value = struct.unpack_from(form, data, at)[0]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder):
    """The Event messages of all files of a task, as `fields`."""
    for file in sorted(pathlib.Path(folder).iterdir()):
        data = file.read_bytes()
        at = 0
        while at < len(data):
            length = struct.unpack_from("<Q", data, at)[0]
            yield fields(data[at + 12:at + 12 + length])
            at += 16 + length
        assert at == len(data), f"{file} is cut off"


def values(folder):
    """[(step, tag, Summary.Value)]"""
    for event in events(folder):
        for summary in event.get(5, []):
            for value in map(fields, fields(summary)[1]):
                yield event.get(2, [0])[0], value[1][0].decode(), value


def scalars(folder):
    """{tag: [(step, number)]}"""
    found = {}
    for step, tag, value in values(folder):
        if 2 in value:
            found.setdefault(tag, []).append((step, value[2][0]))
    return found


def graph(folder):
    """{node: (operator, device)}"""
    for event in events(folder):
        for definition in event.get(4, []):
            nodes = [fields(n) for n in fields(definition)[1]]
            return {n[1][0].decode(): (n[2][0].decode(), n[4][0].decode())
                    for n in nodes}
    return None


def hparams(folder):
    """{name: value} of the start of the session, and how it ended."""
    start, end = None, None
    for _, tag, value in values(folder):
        if tag.startswith("_hparams_/"):
            content = fields(fields(fields(value[9][0])[1][0])[2][0])
            if tag.endswith("start_info"):
                pairs = [fields(e) for e in fields(content[3][0])[1]]
                start = {p[1][0].decode(): fields(p[2][0]) for p in pairs}
                start = {k: v[2][0] if 2 in v else v[3][0].decode()
                         for k, v in start.items()}
            else:
                end = fields(content[4][0])[1][0]
    return start, end
