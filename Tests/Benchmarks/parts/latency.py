"""What one message takes: alone, while a file fills the link, and over one connection kept open; against ZeroMQ and mosquitto."""

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


def during_transfer(bench, alice, control, source):
    """The same while a file is on its way, again and again."""
    stop = threading.Event()

    def transfer():
        while not stop.is_set():
            alice.earshot("file", "send", "bob", source)

    thread = threading.Thread(target=transfer)
    thread.start()
    try:
        time.sleep(0.5)
        return times(control, COUNT // 2, pause=0.002)
    finally:
        stop.set()
        thread.join()


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
    # One that does not hold the daemons' own files.
    target = bench.place / "transfer-in"
    target.mkdir()
    alice, bob = bench.pair({"RESOURCES_ON_CONFLICT": "overwrite", "RESOURCES_DIRECTORY": str(target)})
    source = bench.file("transfer", 2 << 30, random=False)
    control = Control(alice.socket)
    try:
        times(control, COUNT // 4)
        idle = times(control, COUNT)
        bench.row("one after the other, kept connection", COUNT / (sum(idle) / 1e3), "msg/s")
        for part in (0.5, 0.99):
            bench.row(f"durable message, p{part * 100:g}", percentile(idle, part), "ms")
        busy = during_transfer(bench, alice, control, source)
        added = percentile(busy, 0.99) - percentile(idle, 0.99)
        bench.row("durable message during a transfer, p50", percentile(busy, 0.5), "ms")
        bench.row("durable message during a transfer, p99", percentile(busy, 0.99), "ms")
        bench.judge("  above idle, p99", added, "ms", 5, 1, added <= 5)
        median, high = zmq(bench)
        bench.row("ZeroMQ round trip, p50", median, "ms", f"p99 {high:.2f} ms; in memory")
        rival = mosquitto(bench)
        bench.row("mosquitto QoS 0, one way, p50", percentile(rival, 0.5), "ms", f"p99 {percentile(rival, 0.99):.2f} ms; in memory")
    finally:
        control.close()
        bench.end()
        source.unlink()
        shutil.rmtree(target)
