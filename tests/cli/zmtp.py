"""A peer that speaks the wire protocol by itself, right or wrong.

ZeroMQ's ZMTP 3.0 with the NULL mechanism, as far as one needs it to send
messages to a server: greeting, READY, frames.
"""

import hashlib
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


def metadata(kind, identity):
    text = b""
    for key, value in [(b"Socket-Type", kind), (b"Identity", identity)]:
        text += bytes([len(key)]) + key + struct.pack(">I", len(value)) + value
    return text


def command(peer, name, body):
    text = bytes([len(name)]) + name + body
    peer.sendall(bytes([4, len(text)]) + text)


def join(address, identity=None):
    """A connection that the server takes for one of ZeroMQ."""
    peer = connect(address)
    peer.sendall(GREETING)
    read(peer, len(GREETING))
    command(peer, b"READY", metadata(b"DEALER", identity or os.urandom(16)))
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


def password_of(key_file, who):
    """Of a task ("worker 1"), as docs/formats/key.md derives it."""
    secret = bytes.fromhex(open(key_file).read().split()[-1])
    purpose = "paceline/1/plain/" + who.replace(" ", "/")
    return hashlib.blake2b(purpose.encode(), key=secret,
                           digest_size=32).hexdigest()


def join_plain(address, who, password):
    """The same as a task that proves who it is (PLAIN)."""
    peer = connect(address)
    peer.sendall(GREETING[:12] + b"PLAIN".ljust(20, b"\0") + GREETING[32:])
    read(peer, len(GREETING))
    words = [who.encode(), password.encode()]
    command(peer, b"HELLO", b"".join(bytes([len(w)]) + w for w in words))
    assert read_frame(peer)[1].startswith(b"\x07WELCOME")
    command(peer, b"INITIATE", metadata(b"DEALER", os.urandom(16)))
    assert read_frame(peer)[1].startswith(b"\x05READY")
    return peer


def accept(listener):
    """A connection to us, as a server takes it."""
    peer = listener.accept()[0]
    peer.settimeout(60)
    peer.sendall(GREETING)
    read(peer, len(GREETING))
    read_frame(peer)
    command(peer, b"READY", metadata(b"ROUTER", b""))
    return peer


def read_message(peer):
    """All parts."""
    parts, flags = [], 1
    while flags & 1:
        flags, body = read_frame(peer)
        parts.append(body)
    return parts
