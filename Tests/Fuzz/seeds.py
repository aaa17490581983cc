#!/usr/bin/env python3
"""Makes the seed corpora under DIRECTORY from the protocol's vectors, the example settings and the hostile names: one folder a harness."""

import json
import pathlib
import random
import struct
import sys

VECTORS = pathlib.Path("Tests/EarshotWireTests/Vectors")
NAMES = [
    "notes.txt", "a.tar.gz", "../../.ssh/authorized_keys", "/etc/passwd", "..", "", "a\0b", "x" * 255, "x" * 256, "a\u0301/b", "CON",
    "\u202etxt.exe", "\x1b[1A", "zero\u200bwidth", "back\\slash", "line\nbreak", "\U000e0001", "\ue000", " ", "\U0001f4c1", "a (2).txt",
]
RECORD = [b"v=1", b"id=" + b"A" * 52, b"name=alice", b"room=kitchen", b"flag", b"V=2", b"", b"=x", b"binary=\xff\x00"]


def block(data):
    return struct.pack(">H", len(data)) + data


def frames():
    decode = [bytes.fromhex(vector["hex"]) for vector in json.loads((VECTORS / "frames.json").read_text())]
    yield from (b"\0" + frame for frame in decode)
    yield b"\x06" + b"".join(decode)
    # Data that spans many buffers, whole and cut short.
    for count in (100, 300):
        data = b"\x21" * 16 + struct.pack(">QI", 1 << 40, 300) + b"d" * count
        yield b"\x90" + struct.pack(">IB", 328, 0x43) + data + decode[5]
    for vector in json.loads((VECTORS / "malformed.json").read_text()):
        yield (b"\x01" if vector["phase"] == "unproven" else b"\x0a") + bytes.fromhex(vector["hex"])[:2048]


def handshake():
    preference = {"none": 0, "optional": 1, "required": 2}
    for vector in json.loads((VECTORS / "handshakes.json").read_text()):
        for role, (us, them) in enumerate([("initiator", "responder"), ("responder", "initiator")]):
            ours, theirs = vector[us], vector[them]
            signature = bytes.fromhex(theirs["signature"])
            hello = b"\x01\x01" + block(bytes.fromhex(theirs["hello"]))
            proof = b"\x01\x02" + block(block(signature)) + b"\x05\x01"
            signed = b"\x07" + block(bytes.fromhex(ours["signature"]))
            steps = b"\0" + hello + (proof + signed if role == 0 else signed + proof)
            # Over TLS and in plaintext, with the peer that was dialled and with anyone.
            for options in (0, 8, 16, 24):
                setting = role | preference[ours["encryption"]] << 1 | options
                yield bytes([setting]) + block(bytes.fromhex(theirs["publicKey"])) + steps


def connection():
    for seed in range(16):
        made = random.Random(seed)
        yield bytes([seed % 2]) + made.randbytes(200 + 50 * seed)
    # Of groups too.
    for seed in range(8):
        yield bytes([2 | seed % 2]) + random.Random(16 + seed).randbytes(400 + 50 * seed)


def txt():
    yield b"".join(bytes([len(pair)]) + pair for pair in RECORD)
    yield b"".join(bytes([len(pair)]) + pair for pair in [b"k%d=v" % number for number in range(70)])
    yield b"\xff" + b"k=" + b"x" * 253


def settings():
    example = pathlib.Path("Config/earshotd.conf").read_text()
    yield example.encode()
    # With what is commented out, as a person would set it.
    yield "\n".join(line[1:] if line.startswith("#") and "=" in line else line for line in example.split("\n")).encode()
    yield b'[peer]\r\nname = "a # b" ; c\nport=\xef\xbb\xbf\n[x'


def names():
    yield from (name.encode() for name in NAMES)


def tree():
    vectors = json.loads(pathlib.Path("Tests/EarshotTreeTests/Vectors/trees.json").read_text())
    for vector in vectors["good"] + vectors["bad"]:
        yield b"\0" + bytes.fromhex(vector["hex"])[:8000]
    for seed in range(8):
        yield b"\1" + random.Random(seed).randbytes(100 + 60 * seed)


def data():
    piece = struct.pack(">IB", 100, 0x59) + b"d" * 100
    end = struct.pack(">IB", 0, 0x5A)
    for size in (1, 7, 255):
        yield bytes([size]) + piece + piece + end
    yield b"\3" + piece + end + end
    yield b"\3" + struct.pack(">IB", 1 << 31, 0x59) + piece


def main():
    for made in (frames, handshake, connection, txt, settings, names, tree, data):
        directory = pathlib.Path(sys.argv[1]) / made.__name__
        directory.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(made()):
            (directory / f"{number:03}").write_bytes(seed)


main()
