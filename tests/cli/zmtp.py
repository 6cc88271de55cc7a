"""A peer that speaks the wire protocol by itself, right or wrong.

ZeroMQ's ZMTP 3.0 with the NULL mechanism, as far as one needs it to send
messages to a server: greeting, READY, frames.
"""

import os
import socket
import struct

GREETING = (b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" +
            b"NULL".ljust(20, b"\0") + b"\0" + bytes(31))


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)


def name_of(peer):
    """As the server's log writes it."""
    return "%s:%d" % peer.getsockname()


def read(peer, count):
    data = b""
    while len(data) < count:
        more = peer.recv(count - len(data))
        if not more:
            raise EOFError(f"closed after {len(data)} of {count} bytes")
        data += more
    return data


def read_frame(peer):
    """Flags and body."""
    flags = read(peer, 1)[0]
    size = struct.unpack(">Q", read(peer, 8))[0] if flags & 2 \
        else read(peer, 1)[0]
    return flags, read(peer, size)


def join(address, identity=None):
    """A connection that the server takes for one of ZeroMQ."""
    peer = connect(address)
    peer.sendall(GREETING)
    read(peer, len(GREETING))
    ready = b"\x05READY"
    for key, value in [(b"Socket-Type", b"DEALER"),
                       (b"Identity", identity or os.urandom(16))]:
        ready += bytes([len(key)]) + key + struct.pack(">I", len(value)) + \
            value
    peer.sendall(bytes([4, len(ready)]) + ready)
    flags, body = read_frame(peer)
    assert flags & 4 and body.startswith(b"\x05READY"), (flags, body)
    return peer


def send(peer, *parts):
    for number, part in enumerate(parts):
        more = number + 1 < len(parts)
        if len(part) < 256:
            peer.sendall(bytes([more, len(part)]) + part)
        else:
            peer.sendall(bytes([more | 2]) + struct.pack(">Q", len(part)) +
                         part)


def header(version=1, kind=1, payload_bytes=0):
    """A frame header (docs/formats/wire.md); all else is zero."""
    return (b"PLN1" + struct.pack("<HBB", version, kind, 0) + bytes(56) +
            struct.pack("<II", payload_bytes, 0))
