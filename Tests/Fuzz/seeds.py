#!/usr/bin/env python3
"""Makes the seed corpora under DIRECTORY from the protocol's vectors, the example settings and the hostile names: one folder a harness."""

import hashlib
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


def messages():
    everything = {
        "plain_text": "a", "count": 18446744073709551615, "small": -128, "ratio": 0.1, "is_on": True, "when": "2026-11-21T10:00:00.250Z",
        "level": "high", "shape": {"circle": {"radius": 2.5}}, "tree": {"node": {"_0": [{"leaf": {}}]}}, "wrapped": -1,
        "lists": [[1, None], []], "table": {"a": {"b": 1e300}}, "unknown": [{}],
    }
    yield b"\0" + json.dumps(everything).encode()
    yield b"\0" + b'{"tree":' + b'{"node":{"_0":[' * 200 + b"]}}" * 200 + b"}"
    yield b"\0" + json.dumps({"shape": {"box": {"width": 1, "height": 2}}, "plain_text": None}).encode()
    for choice in (1, 3):
        yield bytes([choice]) + b'{"when":1763719200250}'
    yield b"\2" + b'{"\\u0000":1,"a":2,"a":3}'
    yield b"\4" + b"hello"


def archives():
    value = json.dumps({"numbers": [1, 2], "text": "a"}, separators=(",", ":")).encode()
    for kind, version in (("example.value", 1), ("example.value", 2), ("example.value", 3), ("example.other", 1)):
        head = f"{kind} {version} {len(value)}".encode()
        digest = hashlib.sha256(head + b"\n" + value).hexdigest().encode()
        yield b"\0earshot-archive 1 " + head + b" " + digest + b"\n" + value
    yield b"\0earshot-archive 1 example.value 1 9223372036854775807 " + b"0" * 64 + b"\n"
    yield b"\1\0\x20\1" + b"value"


def peers():
    yield b"S2RJNURE6KC4M67OSPBQ7CRQSFL7BWVDLXC3Q7SBBN4GGCQJZ7DQ"
    yield b"s2rjnure6kc4m67ospbq7crqsfl7bwvdlxc3q7sbbn4ggcqjz7da"
    yield b'["' + b"A" * 52 + b'"]'
    yield bytes(range(32))


def main():
    for made in (frames, handshake, connection, txt, settings, names, tree, data, messages, archives, peers):
        directory = pathlib.Path(sys.argv[1]) / made.__name__
        directory.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(made()):
            (directory / f"{number:03}").write_bytes(seed)


main()
