"""One durable message at a time, on this machine's disk and in memory, against NATS JetStream that syncs each before it answers."""

import statistics

from parts.latency import SIZE, percentile

# Of both, each round.
COUNT = 1000
PORT = 4222


class Server:
    """A nats-server on bob."""

    def __init__(self, bench, place):
        self.bench = bench
        settings = place / "nats.conf"
        settings.write_text(f'listen: "0.0.0.0:{PORT}"\njetstream {{ store_dir: "{place}/nats", sync_interval: always }}\n')
        self.log = open(bench.place / "nats.log", "w")
        self.process = bench.bob.start([bench.nats_server, "--config", settings], stdout=self.log, stderr=self.log)
        bench.listens(bench.bob, PORT)

    def times(self, count):
        """Milliseconds of each message, until the server has it on disk."""
        said = self.bench.alice.run([self.bench.binary("benchmark-nats"), self.bench.bob.address, PORT, count, SIZE])
        return sorted(float(line) / 1e3 for line in said.split())

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def times(bench, socket):
    """Milliseconds of each message to bob, until he has it on disk."""
    said = bench.alice.run([bench.binary("benchmark-client"), socket, "bob", COUNT, SIZE])
    return sorted(float(line) / 1e3 for line in said.split())


def measure(bench, place, where):
    """Both at that place, in turns: what the disk is busy with otherwise is the same for both."""
    alice, bob = bench.pair(place=place)
    server = None
    work = {"earshot": lambda: times(bench, alice.socket)}
    try:
        if bench.nats_server:
            server = Server(bench, place)
            work["JetStream"] = lambda: server.times(COUNT)
        taken = {name: [] for name in work}
        for turn in range(bench.rounds + 1):
            for name, once in work.items():
                values = once()
                bench.say(
                    f"   {'warm-up' if turn == 0 else f'round {turn}'}  {name + ', ' + where:<28} p50 {percentile(values, 0.5):8.3f} ms"
                    f"  p99 {percentile(values, 0.99):8.3f} ms")
                if turn > 0:
                    taken[name].append(values)
        for part in (0.5, 0.99):
            for name, rounds in taken.items():
                value = statistics.median(percentile(values, part) for values in rounds)
                note = "TLS, control API, C client" if name == "earshot" else "no TLS, C client, sync_interval: always"
                bench.row(f"{name}, {where}, p{part * 100:g}", value, "ms", note)
        if not server:
            bench.row(f"JetStream, {where}", float("nan"), "ms", "NOT MEASURED: nats-server could not be had from PyPI")
    finally:
        if server:
            server.stop()
        bench.end()


def run(bench):
    measure(bench, bench.disk, "disk")
    measure(bench, bench.place, "memory")
