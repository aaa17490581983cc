"""A stream of 1 GiB through the command line at both ends, plain and over TLS, against socat; and the time to its first byte."""

import statistics
import subprocess
import time

from laboratory import GIB
from parts.files import Pair, certificate


def pipe(bench, pair, source):
    """MB a second from a file on alice's standard input to nowhere on bob's standard output."""

    def work():
        accepting = pair.bob.begin("stream", "accept", "bench", stdout=subprocess.DEVNULL)
        with open(source, "rb") as data:
            pair.alice.earshot("stream", "open", pair.bob.name, "bench", stdin=data)
        if accepting.wait(60) != 0:
            raise RuntimeError("stream accept failed")

    return source.stat().st_size / bench.timed(work) / 1e6


def socat(bench, source, listener="TCP-LISTEN:7004,reuseaddr", sender="TCP"):
    block = ["-b", str(1 << 20), "-u"]
    port = listener.split(":")[1].split(",")[0]
    kind, *options = sender.split(",", 1)
    target = ",".join([f"{kind}:{bench.bob.address}:{port}", *options])
    with open(source, "rb") as data:
        receiving = bench.bob.start(["socat", *block, listener, "STDOUT"], stdout=subprocess.DEVNULL)
        bench.listens(bench.bob, port)

        def work():
            bench.alice.run(["socat", *block, "STDIN", target], stdin=data)
            receiving.wait(60)

        return source.stat().st_size / bench.timed(work) / 1e6


def socat_tls(bench, source):
    keys = certificate(bench)
    options = f"cert={keys},cafile={keys},verify=1,openssl-min-proto-version=TLS1.3"
    return socat(bench, source, f"OPENSSL-LISTEN:7005,reuseaddr,{options}", f"OPENSSL,{options},commonname=benchmark")


def first_byte(pair):
    """Milliseconds from a byte written to a stream that stands to its being read."""
    accepting = pair.bob.begin("stream", "accept", "echo", stdout=subprocess.PIPE)
    opening = pair.alice.begin("stream", "open", pair.bob.name, "echo", stdin=subprocess.PIPE)
    times = []
    for _ in range(51):
        began = time.perf_counter()
        opening.stdin.write(b"x")
        opening.stdin.flush()
        accepting.stdout.read(1)
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.01)
    opening.stdin.close()
    if opening.wait(30) != 0 or accepting.wait(30) != 0:
        raise RuntimeError("the stream did not end in order")
    return statistics.median(times[1:])


def run(bench):
    source = bench.file("gibibyte", GIB)
    plain, secure = Pair(bench, "st-plain", "none"), Pair(bench, "st-tls", "required")
    try:
        bench.compare(
            "MB/s",
            {
                "earshot plain": lambda: pipe(bench, plain, source),
                "earshot TLS": lambda: pipe(bench, secure, source),
                "socat": lambda: socat(bench, source),
                "socat OPENSSL": lambda: socat_tls(bench, source),
            },
            [("earshot plain", "socat", 0.9, 1), ("earshot TLS", "socat OPENSSL", 1.5, 2)],
        )
        latency = first_byte(secure)
        bench.judge("a byte through a stream, TLS", latency, "ms", 5, 1, latency <= 5)
    finally:
        bench.end()
