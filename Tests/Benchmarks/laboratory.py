"""Hosts, daemons, rounds and the table: what all parts of the benchmark share."""

import json
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time

GIB = 1 << 30
# The note of a row that is one point of a line.
BY_SIZE = "by size"


class Failed(Exception):
    """A step of a measurement did not do what it should have."""


class Host:
    """One host of the laboratory."""

    def __init__(self, name, address):
        self.name = name
        self.address = address

    def words(self, command):
        return ["lab", "host", "exec", self.name, "--"] + [str(word) for word in command]

    def run(self, command, **options):
        """Runs a command to its end; what it printed."""
        done = subprocess.run(self.words(command), capture_output=True, text=True, **options)
        if done.returncode != 0:
            raise Failed(f"{self.name}$ {' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, command, **options):
        """Starts a command in the background."""
        return subprocess.Popen(self.words(command), **options)


class Daemon:
    """An earshotd on a host, with the settings of this benchmark, and its command line."""

    def __init__(self, bench, host, name=None, settings=None, arguments=(), place=None):
        self.bench = bench
        self.host = host
        self.name = name or host.name
        self.place = bench.place / f"daemon-{self.name}"
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        state = (place or self.place) / f"state-{self.name}"
        shutil.rmtree(state, ignore_errors=True)
        self.socket = self.place / "socket"
        environment = dict(
            os.environ,
            EARSHOT_SOCKET=str(self.socket),
            EARSHOT_INVITATIONS_FROM_UNKNOWN="accept",
            EARSHOT_MESSAGES_INBOX_LIMIT="4000000",
            EARSHOT_MESSAGES_INBOX_SIZE="4G",
            EARSHOT_RESOURCES_QUOTA="64G",
            EARSHOT_RESOURCES_RESERVE="0%",
            **{f"EARSHOT_{key}": value for key, value in (settings or {}).items()},
        )
        self.environment = environment
        words = [bench.binary("earshotd"), "--name", self.name, "--state-directory", state, "--socket", self.socket]
        self.log = open(self.place / "log", "w")
        self.process = host.start(words + list(arguments), env=environment, stdout=self.log, stderr=self.log)
        bench.started.append(self)
        bench.until(lambda: self.try_earshot("status") is not None, f"{self.name}'s daemon answers")

    def words(self, *arguments):
        return [self.bench.binary("earshot"), *arguments]

    def earshot(self, *arguments, **options):
        """A command of this daemon's user; what it printed."""
        return self.host.run(self.words(*arguments), env=self.environment, **options)

    def try_earshot(self, *arguments):
        done = subprocess.run(self.host.words(self.words(*arguments)), env=self.environment, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def begin(self, *arguments, **options):
        return self.host.start(self.words(*arguments), env=self.environment, **options)

    def agree(self, other):
        """Has a session with the other: by its id, because one of that name from the part before may still be listed."""
        peer = json.loads(other.earshot("status", "--json"))["peer_id"]
        self.bench.until(lambda: peer in (self.try_earshot("peers", "--json") or ""), f"{self.name} sees {other.name}")
        self.earshot("invite", peer)

    @property
    def pid(self):
        """Of the daemon itself: the laboratory's script becomes it."""
        return self.process.pid

    def status(self, key):
        """A figure in kB of /proc/PID/status."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        raise Failed(f"no {key} for {self.name}")

    def cpu_seconds(self):
        """User and system time so far."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def switches(self):
        """Voluntary context switches of all threads so far: each is a wake-up."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            try:
                text = (task / "status").read_text()
            except OSError:
                continue
            total += int(text.split("voluntary_ctxt_switches:")[1].split()[0])
        return total

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


class Bench:
    """One run: the hosts, what was started on them, and the rows of the table."""

    def __init__(self, binaries, place, disk, nats_server, rounds):
        self.binaries = pathlib.Path(binaries)
        self.place = pathlib.Path(place)
        # Where there is a disk below, which takes its time to sync.
        self.disk = pathlib.Path(disk)
        # `None` where it could not be had.
        self.nats_server = nats_server
        self.rounds = rounds
        self.alice = Host("alice", "10.77.0.1")
        self.bob = Host("bob", "10.77.0.2")
        self.started = []
        self.rows = []
        # What was measured for several sizes: (part, name, size, unit, abscissa, value).
        self.points = []
        self.part = ""
        self.place.mkdir(parents=True, exist_ok=True)
        # The laboratory's own file system is in memory, and the only one that its hosts see at the same path.
        subprocess.run(["mount", "-o", "remount,size=90%", "/run"], check=True)

    def binary(self, name):
        return self.binaries / name

    def begin(self, part):
        self.part = part
        self.say(f"== {part}")

    def end(self):
        for daemon in reversed(self.started):
            daemon.stop()
        self.started = []

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def until(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"waited {seconds} s in vain: {what}")
            time.sleep(0.02)

    def listens(self, host, port):
        """Waits until something listens on the host's TCP port."""
        self.until(lambda: f":{port} " in host.run(["ss", "-Hltn", f"sport = :{port}"]), f"port {port} on {host.name}")

    def pair(self, settings=None, arguments=(), place=None):
        """Two daemons in a session with each other; they keep what they keep at the place, or else in memory."""
        alice = Daemon(self, self.alice, settings=settings, arguments=arguments, place=place)
        bob = Daemon(self, self.bob, settings=settings, arguments=arguments, place=place)
        alice.agree(bob)
        return alice, bob

    def file(self, name, size, random=True):
        """A file in memory; sparse where it is not of random bytes."""
        path = self.place / name
        if not path.exists():
            with open(path, "wb") as out:
                if random:
                    left = size
                    while left:
                        left -= out.write(os.urandom(min(left, 1 << 24)))
                else:
                    out.truncate(size)
        return path

    def timed(self, work):
        """Seconds that the work takes."""
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def compare(self, unit, contenders, targets=(), better="more"):
        """Has all contenders do their work in turns; each gives one number a round.

        `targets` are (ours, rival, at least, aim): how many times better than the rival ours is to be.
        """
        numbers = {name: [] for name in contenders}
        for turn in range(self.rounds + 1):
            for name, work in contenders.items():
                number = work()
                self.say(f"   {'warm-up' if turn == 0 else f'round {turn}'}  {name:<28} {number:12.1f} {unit}")
                if turn > 0:
                    numbers[name].append(number)
        medians = {name: statistics.median(values) for name, values in numbers.items()}
        for name, median in medians.items():
            spread = (max(numbers[name]) - min(numbers[name])) / median if median else 0
            wanted = [target for target in targets if target[0] == name]
            self.row(name, median, unit, f"±{spread * 50:.0f} %")
            for _, rival, least, aim in wanted:
                ratio = medians[name] / medians[rival] if better == "more" else medians[rival] / medians[name]
                self.judge(f"  against {rival}", ratio, "x", least, aim, ratio >= least)
        return medians

    def row(self, what, value, unit, note=""):
        self.rows.append((self.part, what, value, unit, note))

    def point(self, what, size, abscissa, value, unit):
        """One size of a row that has several: of the table and of the plot."""
        self.points.append((self.part, what, size, unit, abscissa, value))
        self.row(f"{what}, {short(size)}", value, unit, BY_SIZE)

    def judge(self, what, value, unit, least, aim, is_met):
        sign = "≥" if least < aim else "≤"
        self.row(what, value, unit, f"{'met' if is_met else 'MISSED'}: {sign} {least:g}, aim {aim:g}")

    def table(self):
        part = None
        print(f"\n{'':<44}{'median':>14}  {'':<8}")
        for name, what, value, unit, note in self.rows:
            if name != part:
                part = name
                print(name)
            text = f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
            print(f"  {what:<42}{text:>14}  {unit:<8}{note}")


def short(number):
    """A number of bytes, or of anything else, in few characters."""
    for shift, letter in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if number >= 1 << shift and number % (1 << shift) == 0:
            return f"{number >> shift} {letter}"
    return f"{number:,}"


def children_cpu():
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
