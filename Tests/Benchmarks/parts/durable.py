"""One durable message at a time, on this machine's disk and in memory, against NATS JetStream that syncs each, and the way by itself."""

import statistics

from laboratory import Daemon
from parts.files import certificate
from parts.latency import SIZE, percentile

# Of each, each round.
COUNT = 1000
MANY = 20_000
IN_FLIGHT = 256
PORTS = {"TLS": 4222, "plain": 4223}
BARE_PORT = 4224
ENCRYPTIONS = {"TLS": "required", "plain": "none"}
NOTES = {
    "earshot TLS": "both sides certified; control API, C client",
    "JetStream TLS": "the same of it: verify; C client, sync_interval: always",
    "earshot plain": "control API, C client",
    "JetStream plain": "C client, sync_interval: always",
    "the way by itself": "two processes, sockets and SQLite, and nothing else",
}


class Pair:
    """Two daemons between which messages go."""

    def __init__(self, bench, place, kind):
        settings = {"PEER_ENCRYPTION": ENCRYPTIONS[kind], "PEER_SERVICE_TYPE": f"bench-{kind.lower()}", "PEER_PORT": "0"}
        self.bench = bench
        self.alice = Daemon(bench, bench.alice, f"alice-{kind}", settings, place=place)
        self.bob = Daemon(bench, bench.bob, f"bob-{kind}", settings, place=place)
        self.alice.agree(self.bob)

    def times(self, count):
        """Milliseconds of each message to bob, until he has it on disk."""
        said = self.bench.alice.run([self.bench.binary("benchmark-client"), self.alice.socket, self.bob.name, count, SIZE])
        return sorted(float(line) / 1e3 for line in said.split())


class Server:
    """A nats-server on bob; with TLS, its clients have certificates too, as Earshot's peers have."""

    def __init__(self, bench, place, kind):
        self.bench = bench
        self.port = PORTS[kind]
        self.keys = [certificate(bench)] if kind == "TLS" else []
        settings = place / f"nats-{kind}.conf"
        tls = "".join(f'tls {{ cert_file: "{keys}", key_file: "{keys}", ca_file: "{keys}", verify: true }}\n' for keys in self.keys)
        settings.write_text(
            f'listen: "0.0.0.0:{self.port}"\njetstream {{ store_dir: "{place}/nats-{kind}", sync_interval: always }}\n{tls}')
        self.log = open(bench.place / f"nats-{kind}.log", "w")
        self.process = bench.bob.start([bench.nats_server, "--config", settings], stdout=self.log, stderr=self.log)
        bench.listens(bench.bob, self.port)

    def times(self, count):
        """Milliseconds of each message, until the server has it on disk."""
        said = self.bench.alice.run([self.bench.binary("benchmark-nats"), self.bench.bob.address, self.port, count, SIZE, *self.keys])
        return sorted(float(line) / 1e3 for line in said.split())

    def rate(self, count):
        """Messages a second, of which IN_FLIGHT at most wait for their acknowledgement."""
        said = self.bench.alice.run(
            [self.bench.binary("benchmark-nats"), self.bench.bob.address, self.port, count, SIZE, "-", IN_FLIGHT])
        return float(said)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def many(bench, place):
    """Many messages at once, on disk: what is in one call, against JetStream with publishes in flight."""
    alice, server = Pair(bench, place, "plain").alice, Server(bench, place, "plain")
    lines = bench.place / "many"
    lines.write_text(("x" * SIZE + "\n") * MANY)

    def send():
        with open(lines) as source:
            alice.earshot("send", "bob-plain", "--lines", stdin=source)

    name = f"JetStream, {IN_FLIGHT} in flight, disk"
    try:
        bench.compare(
            "msg/s",
            {"earshot, one call, disk": lambda: MANY / bench.timed(send), name: lambda: server.rate(MANY)},
            [("earshot, one call, disk", name, 1, 1.5)],
        )
    finally:
        server.stop()
        bench.end()


class Bare:
    """The same way as Earshot's, of nothing but sockets, threads and transactions (rivals/bare.c): what is left to be gained."""

    def __init__(self, bench, place):
        self.bench = bench
        self.socket = bench.place / "bare"
        database = place / "bare.db"
        for stale in [self.socket] + [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-shm")]:
            stale.unlink(missing_ok=True)
        program = bench.binary("benchmark-bare")
        self.processes = [bench.bob.start([program, "receive", BARE_PORT, database])]
        bench.listens(bench.bob, BARE_PORT)
        self.processes.append(bench.alice.start([program, "relay", self.socket, bench.bob.address, BARE_PORT]))
        bench.until(lambda: str(self.socket) in bench.alice.run(["ss", "-Hlx"]), "the relay listens")

    def times(self, count):
        """Milliseconds of each message."""
        said = self.bench.alice.run([self.bench.binary("benchmark-bare"), "send", self.socket, count])
        return sorted(float(line) / 1e3 for line in said.split())

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(bench, place, where):
    """All at that place, in turns: what the disk is busy with otherwise is the same for all."""
    rivals = []
    try:
        work = {}
        for kind in ENCRYPTIONS:
            work[f"earshot {kind}"] = Pair(bench, place, kind).times
            if bench.nats_server:
                rivals.append(Server(bench, place, kind))
                work[f"JetStream {kind}"] = rivals[-1].times
        rivals.append(Bare(bench, place))
        work["the way by itself"] = rivals[-1].times
        taken = {name: [] for name in work}
        for turn in range(bench.rounds + 1):
            for name, times in work.items():
                values = times(COUNT)
                bench.say(
                    f"   {'warm-up' if turn == 0 else f'round {turn}'}  {name + ', ' + where:<28} p50 {percentile(values, 0.5):8.3f} ms"
                    f"  p99 {percentile(values, 0.99):8.3f} ms")
                if turn > 0:
                    taken[name].append(values)
        for part in (0.5, 0.99):
            for name, rounds in taken.items():
                value = statistics.median(percentile(values, part) for values in rounds)
                bench.row(f"{name}, {where}, p{part * 100:g}", value, "ms", NOTES[name])
        if not bench.nats_server:
            bench.row(f"JetStream, {where}", float("nan"), "ms", "NOT MEASURED: nats-server could not be had from PyPI")
    finally:
        for rival in rivals:
            rival.stop()
        bench.end()


def run(bench):
    if bench.nats_server:
        many(bench, bench.disk)
    measure(bench, bench.disk, "disk")
    measure(bench, bench.place, "memory")
