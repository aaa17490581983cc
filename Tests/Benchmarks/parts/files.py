"""Files in memory, from host to host: 1 GiB, plain and over TLS, against socat, nc, rsync and scp; other sizes; `file get` against cp."""

import json
import os
import shutil
import statistics
import subprocess
import time

from laboratory import GIB, Daemon

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 26, GIB)


class Copy:
    """A rival: something that listens on bob, and something on alice that sends it the file."""

    def __init__(self, bench, source):
        self.bench = bench
        self.source = source
        self.target = bench.place / "received"

    def clear(self):
        self.target.unlink(missing_ok=True)

    def check(self):
        if self.target.stat().st_size != self.source.stat().st_size:
            raise RuntimeError(f"{self.target.stat().st_size} bytes arrived of {self.source.stat().st_size}")

    def once(self, port, listener, sender, stdin=None, stdout=None):
        """MB a second of one copy; the listener ends with it."""
        self.clear()
        with open(stdout or os.devnull, "wb") as sink, open(stdin or os.devnull, "rb") as source:
            receiving = self.bench.bob.start(listener, stdout=sink)
            self.bench.listens(self.bench.bob, port)

            def work():
                self.bench.alice.run(sender, stdin=source)
                if receiving.wait(120) != 0:
                    raise RuntimeError(f"{listener[0]} failed")

            seconds = self.bench.timed(work)
        self.check()
        return self.source.stat().st_size / seconds / 1e6

    def socat(self):
        block = ["-b", str(1 << 20), "-u"]
        return self.once(
            7001,
            ["socat", *block, "TCP-LISTEN:7001,reuseaddr", f"CREATE:{self.target}"],
            ["socat", *block, f"OPEN:{self.source},rdonly", f"TCP:{self.bench.bob.address}:7001"],
        )

    def socat_tls(self):
        keys = certificate(self.bench)
        block = ["-b", str(1 << 20), "-u"]
        options = f"cert={keys},cafile={keys},verify=1,openssl-min-proto-version=TLS1.3"
        return self.once(
            7002,
            ["socat", *block, f"OPENSSL-LISTEN:7002,reuseaddr,{options}", f"CREATE:{self.target}"],
            ["socat", *block, f"OPEN:{self.source},rdonly", f"OPENSSL:{self.bench.bob.address}:7002,{options},commonname=benchmark"],
        )

    def nc(self):
        return self.once(
            7003, ["nc", "-N", "-l", "7003"], ["nc", "-N", self.bench.bob.address, "7003"], stdin=self.source, stdout=self.target
        )

    def timed_command(self, command, **options):
        self.clear()
        seconds = self.bench.timed(lambda: self.bench.alice.run(command, **options))
        self.check()
        return self.source.stat().st_size / seconds / 1e6


def certificate(bench):
    """A key and a certificate of it in one file, for both sides."""
    keys = bench.place / "keys.pem"
    if not keys.exists():
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=benchmark",
             "-keyout", bench.place / "key", "-out", bench.place / "certificate"],
            check=True, capture_output=True)
        keys.write_text((bench.place / "key").read_text() + (bench.place / "certificate").read_text())
    return keys


def rsync_daemon(bench, directory):
    """An rsync daemon on bob that takes files into a directory."""
    settings = bench.place / "rsyncd.conf"
    settings.write_text(f"port = 8730\nuse chroot = no\n[in]\npath = {directory}\nread only = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n")
    process = bench.bob.start(["rsync", "--daemon", "--no-detach", f"--config={settings}"])
    bench.listens(bench.bob, 8730)
    return process


def ssh_daemon(bench):
    """An sshd on bob, and the words by which alice calls it."""
    place = bench.place / "ssh"
    place.mkdir(mode=0o700, exist_ok=True)
    for name in ("host", "user"):
        if not (place / name).exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name], check=True)
    shutil.copy(place / "user.pub", place / "authorized_keys")
    os.makedirs("/run/sshd", exist_ok=True)
    bench.bob.run(["mkdir", "-p", "/run/sshd"])
    words = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null"]
    for option in (f"HostKey={place}/host", "Port=2222", f"AuthorizedKeysFile={place}/authorized_keys", "StrictModes=no", "PidFile=none",
                   "PermitRootLogin=yes", "UsePAM=no", "Subsystem=sftp internal-sftp"):
        words += ["-o", option]
    process = bench.bob.start(words, stderr=subprocess.DEVNULL)
    bench.listens(bench.bob, 2222)
    return process, ["-q", "-P", "2222", "-i", str(place / "user"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]


class Pair:
    """Two daemons between which a file goes."""

    def __init__(self, bench, name, encryption):
        self.directory = bench.place / f"in-{name}"
        self.directory.mkdir(exist_ok=True)
        settings = {"PEER_ENCRYPTION": encryption, "RESOURCES_ON_CONFLICT": "overwrite", "PEER_SERVICE_TYPE": f"bench-{name}", "PEER_PORT": "0"}
        self.alice = Daemon(bench, bench.alice, f"alice-{name}", settings)
        self.bob = Daemon(bench, bench.bob, f"bob-{name}", dict(settings, RESOURCES_DIRECTORY=str(self.directory)))
        self.alice.agree(self.bob)
        self.bench = bench
        self.cpu = 0

    def send(self, source):
        """MB a second of one file."""
        target = self.directory / source.name
        target.unlink(missing_ok=True)
        before = self.alice.cpu_seconds() + self.bob.cpu_seconds()
        seconds = self.bench.timed(lambda: self.alice.earshot("file", "send", self.bob.name, source))
        self.cpu = self.alice.cpu_seconds() + self.bob.cpu_seconds() - before
        if target.stat().st_size != source.stat().st_size:
            raise RuntimeError(f"{target} has another size")
        return source.stat().st_size / seconds / 1e6


def by_size(bench, secure, copy, scp):
    """What a file takes, from the command to its end."""
    for size in SIZES:
        source = bench.file(f"size-{size}", size)
        sized = Copy(bench, source)
        work = {
            "earshot TLS": lambda: secure.send(source),
            "scp": lambda: sized.timed_command(["scp", *scp, source, f"{bench.bob.address}:{copy.target}"]),
        }
        for name, once in work.items():
            rates = [once() for _ in range(bench.rounds)]
            bench.point(name, size, "bytes", size / statistics.median(rates) / 1e3, "ms")
        source.unlink()


def at_once(bench, source):
    """Two files to two peers at the same time: how much longer the slower one takes."""
    settings = {"PEER_SERVICE_TYPE": "bench-once", "PEER_PORT": "0", "RESOURCES_ON_CONFLICT": "overwrite"}
    sender = Daemon(bench, bench.alice, "alice-once", settings)
    receivers = []
    for name in ("bob-once", "carol-once"):
        directory = bench.place / f"in-{name}"
        directory.mkdir(exist_ok=True)
        receivers.append(Daemon(bench, bench.bob, name, dict(settings, RESOURCES_DIRECTORY=str(directory))))
        sender.agree(receivers[-1])
    ratios = []
    for _ in range(bench.rounds):
        began, ends = time.perf_counter(), {}
        sending = [sender.begin("file", "send", receiver.name, source) for receiver in receivers]
        while len(ends) < len(sending):
            for process in sending:
                if process.poll() is not None:
                    ends.setdefault(process.pid, time.perf_counter() - began)
            time.sleep(0.002)
        if any(process.returncode != 0 for process in sending):
            raise RuntimeError("earshot file send failed")
        ratios.append(max(ends.values()) / min(ends.values()))
    value = statistics.median(ratios)
    bench.judge("two files at once, the slower takes", value, "times", 1.2, 1.1, value <= 1.2)


def fetched(bench, source):
    """`file get` of what is in the spool, by the daemon's own user, against cp of it."""
    settings = {"PEER_SERVICE_TYPE": "bench-get", "PEER_PORT": "0"}
    alice, bob = (Daemon(bench, host, f"{host.name}-get", settings) for host in (bench.alice, bench.bob))
    alice.agree(bob)
    target = bench.place / "fetched"
    target.mkdir(exist_ok=True)

    def get():
        (target / source.name).unlink(missing_ok=True)
        sent = json.loads(alice.earshot("file", "send", bob.name, source, "--json"))["resources"][0]["id"]
        return bench.timed(lambda: bob.earshot("file", "get", sent, "-o", target))

    def cp():
        (target / "copy").unlink(missing_ok=True)
        return bench.timed(lambda: bench.bob.run(["cp", source, target / "copy"]))

    bench.compare("s", {"earshot file get": get, "cp": cp}, [("earshot file get", "cp", 1 / 1.1, 5)], better="less")
    shutil.rmtree(target)


def run(bench):
    source = bench.file("gibibyte", GIB)
    copy = Copy(bench, source)
    plain, secure = Pair(bench, "plain", "none"), Pair(bench, "tls", "required")
    rsync, (sshd, scp) = rsync_daemon(bench, bench.place), ssh_daemon(bench)
    try:
        bench.compare(
            "MB/s",
            {
                "earshot plain": lambda: plain.send(source),
                "socat": copy.socat,
                "nc": copy.nc,
                "rsync daemon": lambda: copy.timed_command(["rsync", "-W", source, f"rsync://{bench.bob.address}:8730/in/received"]),
                "earshot TLS": lambda: secure.send(source),
                "socat OPENSSL": copy.socat_tls,
                "scp": lambda: copy.timed_command(["scp", *scp, source, f"{bench.bob.address}:{copy.target}"]),
            },
            [
                ("earshot plain", "socat", 0.95, 1.2),
                ("earshot TLS", "socat OPENSSL", 1.9, 2),
                ("earshot TLS", "scp", 5, 6),
            ],
        )
        for name, pair in (("plain", plain), ("TLS", secure)):
            bench.row(f"CPU of both daemons, {name}", pair.cpu / source.stat().st_size * 1e9, "s/GB")
        by_size(bench, secure, copy, scp)
        fetched(bench, source)
        at_once(bench, source)
    finally:
        for process in (rsync, sshd):
            process.terminate()
            process.wait()
        copy.clear()
        bench.end()
