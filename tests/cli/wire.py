"""A peer that speaks the wire protocol by itself, right or wrong.

docs/formats/wire.md has the bytes: a handshake of fixed messages, then
messages with a prefix of eight bytes each.  Without keys, or with a proof.
"""

import hashlib
import os
import socket
import struct

BYTES = 72  # of every message of the handshake
NONE, PROOF, ENCRYPTED = range(3)
VERSION = 2  # of the protocol: PL_FRAME_VERSION
JOIN = 1  # a kind of frame
ROLES = {"worker": 1, "ps": 2, "evaluator": 3}


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


def principal(text):
    """Role and index of "worker 1"; of no task for None."""
    if text is None:
        return 0, 0
    role, index = text.split()
    return ROLES[role], int(index)


def hello(mechanism=NONE, who=None, wanted=None, port=0, identity=bytes(16),
          version=VERSION, verdict=0):
    role, index = principal(who)
    wanted_role, wanted_index = principal(wanted)
    return (b"PLH1" + struct.pack("<HBBBBHIIxxxx", version, mechanism, verdict,
                                  role, wanted_role, port, index,
                                  wanted_index) +
            identity + os.urandom(32))


def join(address, identity=None):
    """A connection that the server takes for one of a task without keys."""
    peer = connect(address)
    peer.sendall(hello(identity=identity or os.urandom(16)))
    answer = read(peer, BYTES)
    assert answer[:8] == b"PLH1" + struct.pack("<HBB", VERSION, NONE, 0), answer
    return peer


def proof_key(key_file, who):
    """Of a task ("worker 1"), as docs/formats/key.md derives it."""
    secret = bytes.fromhex(open(key_file).read().split()[-1])
    label = "paceline/1/proof/" + who.replace(" ", "/")
    return hashlib.blake2b(label.encode(), key=secret, digest_size=32).digest()


def mac(key, label, *said):
    text = label.encode() + b"\0" + b"".join(said)
    return hashlib.blake2b(text, key=key, digest_size=32).digest()


def join_proof(address, who, key, server="ps 0"):
    """The same as a task that proves its identity; and the server proves its
    own."""
    peer = connect(address)
    ours = hello(PROOF, who, server, int(address.rsplit(":", 1)[1]),
                 os.urandom(16))
    peer.sendall(ours)
    theirs = read(peer, BYTES)
    assert theirs[:8] == b"PLH1" + struct.pack("<HBB", VERSION, PROOF, 0), theirs
    proof = b"PLP1" + bytes(36)
    proof += mac(key, "paceline/1/client proves", ours, theirs, bytes(32))
    peer.sendall(proof)
    answer = read(peer, BYTES)
    assert answer[40:] == mac(key, "paceline/1/server proves", ours, theirs,
                              proof, bytes(32)), answer
    return peer


def accept(listener):
    """A connection to us, as a server without keys takes it."""
    peer = listener.accept()[0]
    peer.settimeout(60)
    read(peer, BYTES)
    peer.sendall(hello())
    return peer


def header(version=VERSION, kind=1, payload_bytes=0):
    """A frame header (docs/formats/wire.md); all else is zero."""
    return (b"PLN1" + struct.pack("<HBB", version, kind, 0) + bytes(56) +
            struct.pack("<II", payload_bytes, 0))


def message(*parts):
    """A header and its payload, or anything else, as one message."""
    body = b"".join(parts)
    return (b"PLM1" + struct.pack("<I", len(body)) + body +
            bytes(-len(body) % 8))


def send(peer, *parts):
    peer.sendall(message(*parts))


def read_message(peer):
    """Header and payload."""
    magic, size = struct.unpack("<4sI", read(peer, 8))
    assert magic == b"PLM1", magic
    body = read(peer, size + -size % 8)[:size]
    return [body[:72], body[72:]]
