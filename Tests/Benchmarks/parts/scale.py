"""One daemon with 1,000 peers advertised around it, and with 50 sessions."""

import base64
import json
import os
import subprocess
import time

from laboratory import Daemon

PEERS = 1000
SESSIONS = 50

SERVICE = """<?xml version="1.0" standalone="no"?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name>peer-{number}</name><service><type>_earshot._tcp</type><port>{port}</port>
<txt-record>v=1</txt-record><txt-record>id={id}</txt-record><txt-record>name=peer-{number}</txt-record></service></service-group>
"""


def advertise(bench):
    """1,000 services of one avahi-daemon, as static ones: each is a peer of its own."""
    directory = bench.place / "services"
    directory.mkdir()
    for number in range(PEERS):
        peer = base64.b32encode(os.urandom(32)).decode().rstrip("=")
        (directory / f"{number}.service").write_text(SERVICE.format(number=number, port=20000 + number, id=peer))
    bench.alice.run(["mount", "--bind", directory, "/etc/avahi/services"])
    bench.alice.run(["avahi-daemon", "--reload"])


def run(bench):
    bob = Daemon(bench, bench.bob)
    try:
        time.sleep(2)
        memory, cpu = bob.status("VmRSS"), bob.cpu_seconds()
        began = time.monotonic()
        advertise(bench)

        def known():
            return json.loads(bob.earshot("status", "--json"))["counts"]["peers"]

        bench.until(lambda: known() >= PEERS, f"{PEERS} peers to be found", 180)
        bench.row(f"until {PEERS} peers are listed", time.monotonic() - began, "s")
        bench.row("  CPU for that", bob.cpu_seconds() - cpu, "s")
        bench.row("  resident", bob.status("VmRSS") / 1024, "MiB", f"{(bob.status('VmRSS') - memory) / PEERS:.1f} kB a peer")
        cpu, began = bob.cpu_seconds(), time.monotonic()
        time.sleep(20)
        bench.row("  CPU afterwards, idle", (bob.cpu_seconds() - cpu) / (time.monotonic() - began) * 100, "%")

        memory, cpu, began = bob.status("VmRSS"), bob.cpu_seconds(), time.monotonic()
        nodes = bench.alice.start(
            [bench.binary("benchmark"), "sessions", f"{bench.bob.address}:47110", SESSIONS],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            if nodes.stdout.readline().strip() != "ready":
                raise RuntimeError("the nodes did not get their sessions")
            bench.row(f"until {SESSIONS} sessions stand", time.monotonic() - began, "s")
            bench.row("  CPU for that", bob.cpu_seconds() - cpu, "s")
            bench.row("  resident", bob.status("VmRSS") / 1024, "MiB", f"{(bob.status('VmRSS') - memory) / SESSIONS:.0f} kB a session")
            cpu, began = bob.cpu_seconds(), time.monotonic()
            time.sleep(20)
            bench.row("  CPU afterwards, idle", (bob.cpu_seconds() - cpu) / (time.monotonic() - began) * 100, "%")
        finally:
            nodes.terminate()
            nodes.wait()
    finally:
        bench.end()
