"""Messages from daemon to daemon: durable ones, acknowledged, of several sizes, against mosquitto's QoS 0."""

import json
import statistics
import subprocess

COUNT = 200_000
SIZE = 128
READ = 100_000
# In bytes, of which so many messages have at most TOTAL.
SIZES = (16, 128, 1 << 10, 1 << 13, 1 << 16, 1 << 20)
TOTAL = 64 << 20


def mosquitto(bench, lines, count):
    """Publisher on alice, broker and subscriber on bob; messages a second until the subscriber has the last one."""
    subscriber = bench.bob.start(["mosquitto_sub", "-h", "127.0.0.1", "-p", "1883", "-t", "x", "-C", str(count)], stdout=subprocess.DEVNULL)
    # It has subscribed once the broker has its connection.
    bench.until(lambda: bench.bob.run(["ss", "-Htn", "state", "established", "dport", "=", ":1883"]).strip(), "the subscriber")

    def work():
        with open(lines) as source:
            bench.alice.run(["mosquitto_pub", "-h", bench.bob.address, "-p", "1883", "-t", "x", "-l", "-q", "0"], stdin=source)
        if subscriber.wait(120) != 0:
            raise RuntimeError("the subscriber did not get all messages")

    return count / bench.timed(work)


def written(bench, size, count):
    """A file of so many lines, each a message."""
    lines = bench.place / "lines"
    lines.write_text(("x" * size + "\n") * count)
    return lines


def by_size(bench, alice):
    """What a message takes, sent among many."""
    for size in SIZES:
        count = min(TOTAL // size, COUNT // 4)
        lines = written(bench, size, count)

        def send():
            with open(lines) as source:
                alice.earshot("send", "bob", "--lines", stdin=source)

        work = {"earshot durable": lambda: count / bench.timed(send), "mosquitto QoS 0": lambda: mosquitto(bench, lines, count)}
        for name, once in work.items():
            bench.point(name, size, "bytes", 1e6 / statistics.median([once() for _ in range(bench.rounds)]), "µs/msg")


def unread(daemon):
    return json.loads(daemon.earshot("status", "--json"))["counts"]["unread"]


def reading(bench, daemon):
    """Messages a second that the command line takes out of the inbox."""
    with open("/dev/null", "w") as sink:

        def work():
            if daemon.begin("receive", "--raw", "--count", str(READ), stdout=sink).wait() != 0:
                raise RuntimeError("earshot receive failed")

        return READ / bench.timed(work)


def run(bench):
    lines = written(bench, SIZE, COUNT)
    broker_settings = bench.place / "mosquitto.conf"
    broker_settings.write_text("user root\nlistener 1883 0.0.0.0\nallow_anonymous true\nmax_queued_messages 0\npersistence false\n")
    broker = bench.bob.start(["mosquitto", "-c", broker_settings], stderr=subprocess.DEVNULL)
    bench.listens(bench.bob, 1883)
    alice, bob = bench.pair()

    def send():
        with open(lines) as source:
            alice.earshot("send", "bob", "--lines", stdin=source)

    def durable():
        before = unread(bob)
        rate = COUNT / bench.timed(send)
        arrived = unread(bob) - before
        if arrived != COUNT:
            raise RuntimeError(f"{arrived} of {COUNT} messages are in the inbox")
        return rate

    try:
        bench.compare(
            "msg/s",
            {"earshot durable": durable, "mosquitto QoS 0": lambda: mosquitto(bench, lines, COUNT)},
            [("earshot durable", "mosquitto QoS 0", 1.2, 3)],
        )
        rate = reading(bench, bob)
        bench.judge("earshot receive --raw, and marked read", rate, "msg/s", 80_000, 100_000, rate >= 80_000)
        before = alice.cpu_seconds(), bob.cpu_seconds()
        send()
        bench.row("CPU of the sender's daemon", (alice.cpu_seconds() - before[0]) * 1e6 / COUNT, "µs/msg")
        bench.row("CPU of the receiver's daemon", (bob.cpu_seconds() - before[1]) * 1e6 / COUNT, "µs/msg")
        by_size(bench, alice)
    finally:
        broker.terminate()
        broker.wait()
        bench.end()
