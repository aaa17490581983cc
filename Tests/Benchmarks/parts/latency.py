"""What one message takes: alone, and beside a file or a stream that fills the link; as a command; against ZeroMQ and mosquitto."""

import http.client
import json
import shutil
import socket
import statistics
import subprocess
import threading
import time

SIZE = 128
COUNT = 2000
COMMANDS = 100


class Control(http.client.HTTPConnection):
    """The control API over one connection that is kept."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, path, value=None):
        """What it answers; fails where that is an error."""
        self.request(method, path, None if value is None else json.dumps(value), {"Content-Type": "application/json"})
        answer = self.getresponse()
        body = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {body.decode()}")
        return json.loads(body)

    def post(self, path, value):
        return self.ask("POST", path, value)


def times(control, count, pause=0.0):
    """Milliseconds of each message, until its receiver has it on disk."""
    request = {"to": ["bob"], "body": "x" * SIZE}
    all_times = []
    for _ in range(count):
        began = time.perf_counter()
        answer = control.post("/v1/messages", request)
        all_times.append((time.perf_counter() - began) * 1e3)
        if answer["recipients"][0]["status"] != "delivered":
            raise RuntimeError(f"a message was not delivered: {answer}")
        if pause:
            time.sleep(pause)
    return sorted(all_times)


def percentile(values, part):
    return values[min(int(len(values) * part), len(values) - 1)]


def during(control, transfer):
    """The same while a transfer is made again and again."""
    stop = threading.Event()

    def repeat():
        while not stop.is_set():
            transfer()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        time.sleep(0.5)
        return times(control, COUNT // 2, pause=0.002)
    finally:
        stop.set()
        thread.join()


def beside(bench, encryption, source):
    """Messages alone, beside a file, and beside a stream, between two daemons; the times alone."""
    target = bench.place / f"beside-{encryption}"
    target.mkdir()
    settings = {"PEER_ENCRYPTION": encryption, "RESOURCES_ON_CONFLICT": "overwrite", "RESOURCES_DIRECTORY": str(target)}
    alice, bob = bench.pair(settings)
    control = Control(alice.socket)
    name = {"none": "plain", "required": "TLS"}[encryption]

    def stream():
        accepting = bob.begin("stream", "accept", "bench", stdout=subprocess.DEVNULL)
        with open(source, "rb") as data:
            alice.earshot("stream", "open", "bob", "bench", stdin=data)
        accepting.wait(60)

    try:
        times(control, COUNT // 4)
        idle = times(control, COUNT)
        bench.row(f"one after the other, kept connection, {name}", COUNT / (sum(idle) / 1e3), "msg/s")
        for part in (0.5, 0.99):
            bench.row(f"durable message, {name}, p{part * 100:g}", percentile(idle, part), "ms")
        for what, transfer in (("file", lambda: alice.earshot("file", "send", "bob", source)), ("stream", stream)):
            busy = during(control, transfer)
            for part in (0.5, 0.99):
                bench.row(f"durable message beside a {what}, {name}, p{part * 100:g}", percentile(busy, part), "ms")
            added = percentile(busy, 0.99) - percentile(idle, 0.99)
            bench.judge("  above idle, p99", added, "ms", 2, 1, added <= 2)
        if encryption == "required":
            commands(bench, alice)
    finally:
        control.close()
        bench.end()
        shutil.rmtree(target)


def commands(bench, alice):
    """Milliseconds of a command, from its start to its end, with the shell's own."""
    for words in (["send", "bob", "x"], ["--version"]):
        program = " ".join(str(word) for word in alice.words(*words))
        loop = f"i=0; while [ $i -lt {COMMANDS} ]; do {program}; i=$((i+1)); done"
        taken = bench.timed(lambda: alice.host.run(["sh", "-c", loop], env=alice.environment)) / COMMANDS * 1e3
        if words[0] == "send":
            bench.judge("earshot send, as a command", taken, "ms", 10, 8, taken <= 10)
        else:
            bench.row("earshot --version", taken, "ms")


def zmq(bench):
    program = bench.binary("benchmark-zmq")
    answering = bench.bob.start([program, "echo", "7020", COUNT])
    bench.listens(bench.bob, 7020)
    median, high = bench.alice.run([program, "ask", bench.bob.address, "7020", COUNT, SIZE]).split()
    answering.wait(30)
    return float(median) / 1e3, float(high) / 1e3


def mosquitto(bench):
    """A line through publisher, broker and subscriber, which all stay connected."""
    settings = bench.place / "mosquitto.conf"
    settings.write_text("user root\nlistener 1884 0.0.0.0\nallow_anonymous true\n")
    broker = bench.bob.start(["mosquitto", "-c", settings], stderr=subprocess.DEVNULL)
    bench.listens(bench.bob, 1884)
    subscriber = bench.bob.start(["mosquitto_sub", "-p", "1884", "-t", "x"], stdout=subprocess.PIPE)
    bench.until(lambda: bench.bob.run(["ss", "-Htn", "state", "established", "dport", "=", ":1884"]).strip(), "the subscriber")
    publisher = bench.alice.start(["mosquitto_pub", "-h", bench.bob.address, "-p", "1884", "-t", "x", "-l"], stdin=subprocess.PIPE)
    line = b"x" * SIZE + b"\n"
    taken = []
    try:
        for _ in range(COUNT // 4):
            began = time.perf_counter()
            publisher.stdin.write(line)
            publisher.stdin.flush()
            subscriber.stdout.readline()
            taken.append((time.perf_counter() - began) * 1e3)
    finally:
        for process in (publisher, subscriber, broker):
            process.terminate()
            process.wait()
    return sorted(taken)


def run(bench):
    source = bench.file("transfer", 2 << 30, random=False)
    try:
        for encryption in ("none", "required"):
            beside(bench, encryption, source)
        median, high = zmq(bench)
        bench.row("ZeroMQ round trip, p50", median, "ms", f"p99 {high:.2f} ms; in memory")
        rival = mosquitto(bench)
        bench.row("mosquitto QoS 0, one way, p50", percentile(rival, 0.5), "ms", f"p99 {percentile(rival, 0.99):.2f} ms; in memory")
    finally:
        source.unlink()
