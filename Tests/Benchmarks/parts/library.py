"""128-byte messages through the library, without daemon and command line, against ZeroMQ's push and pull."""

import statistics

COUNT = 1_000_000
SIZE = 128


class Sides:
    """A receiver on bob and a sender on alice; the rate is the receiver's, and of live messages what it missed does not count."""

    def __init__(self, bench, mode, encryption, port):
        self.bench, self.mode, self.encryption, self.port = bench, mode, encryption, port
        self.missed = 0

    def once(self):
        bench = self.bench
        program = bench.binary("benchmark")
        receiver = bench.bob.start([program, "receive", self.port, "--encryption", self.encryption], stdout=-1, text=True)
        if receiver.stdout.readline().strip() != "ready":
            raise RuntimeError("the receiver did not start")
        bench.alice.run(
            [program, "send", f"{bench.bob.address}:{self.port}", "--count", COUNT, "--size", SIZE, "--mode", self.mode, "--encryption", self.encryption])
        rate, received, missed = map(int, receiver.stdout.readline().split())
        receiver.wait(30)
        self.missed = missed / (received + missed)
        return rate


def zmq(bench):
    program = bench.binary("benchmark-zmq")
    receiver = bench.bob.start([program, "pull", "7010", 2 * COUNT, SIZE], stdout=-1, text=True)
    bench.listens(bench.bob, 7010)
    bench.alice.run([program, "push", bench.bob.address, "7010", 2 * COUNT, SIZE])
    return float(receiver.communicate(timeout=60)[0])


def run(bench):
    plain = Sides(bench, "unreliable", "none", 7011)
    secure = Sides(bench, "unreliable", "required", 7012)
    durable = Sides(bench, "reliable", "required", 7013)
    bench.compare(
        "msg/s",
        {
            "earshot live, plain": plain.once,
            "earshot live, TLS": secure.once,
            "earshot durable, TLS": durable.once,
            "ZeroMQ push/pull": lambda: zmq(bench),
        },
        [("earshot live, plain", "ZeroMQ push/pull", 0.7, 1), ("earshot live, TLS", "ZeroMQ push/pull", 0.7, 1)],
    )
    for name, sides in (("plain", plain), ("TLS", secure)):
        bench.row(f"live messages that a reader missed, {name}", sides.missed * 100, "%")
