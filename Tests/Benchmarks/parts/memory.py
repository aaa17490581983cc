"""What a daemon takes: idle, with 1,000 readers of its events, and while a file of 10 GiB passes."""

import http.client
import socket
import threading
import time

from laboratory import Daemon

TEN_GIB = 10 << 30
READERS = 1000


def readers(bench, daemon):
    """Connections that read the events."""
    sockets = []
    for _ in range(READERS):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(daemon.socket))
        client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sockets.append(client)
    for client in sockets:
        client.recv(4096)
    return sockets


def run(bench):
    target = bench.place / "large-in"
    target.mkdir()
    alice, bob = bench.pair({"RESOURCES_DIRECTORY": str(target), "RESOURCES_ON_CONFLICT": "overwrite"})
    try:
        time.sleep(2)
        bench.row("resident, idle with one session", alice.status("VmRSS") / 1024, "MiB")
        switches, cpu, began = alice.switches(), alice.cpu_seconds(), time.monotonic()
        time.sleep(20)
        seconds = time.monotonic() - began
        bench.row("wake-ups a second, idle", (alice.switches() - switches) / seconds, "1/s")
        bench.row("CPU, idle", (alice.cpu_seconds() - cpu) / seconds * 100, "%")

        large = bench.file("large", TEN_GIB, random=False)
        peak = {"alice": 0, "bob": 0}
        done = threading.Event()

        def watch():
            while not done.is_set():
                for daemon in (alice, bob):
                    peak[daemon.name] = max(peak[daemon.name], daemon.status("RssAnon") + daemon.status("RssFile"))
                time.sleep(0.05)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            seconds = bench.timed(lambda: alice.earshot("file", "send", "bob", large))
        finally:
            done.set()
            watcher.join()
        bench.row("a file of 10 GiB", TEN_GIB / seconds / 1e6, "MB/s", "sparse")
        for name, kilobytes in peak.items():
            bench.judge(f"resident at most meanwhile, {name}", kilobytes / 1024, "MiB", 64, 48, kilobytes < 64 * 1024)
        large.unlink()
        (target / "large").unlink()

        before = alice.status("VmRSS")
        sockets = readers(bench, alice)
        with_readers = alice.status("VmRSS")
        bench.row(f"resident with {READERS} event readers", with_readers / 1024, "MiB", f"{(with_readers - before) / READERS:.1f} kB each")
        for client in sockets:
            client.close()
    finally:
        bench.end()
