"""Machines that have nothing but a home: a daemon each, without discovery, that knows the others by their addresses."""
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# Seconds within which anything that is waited for has to come.
patience = 60


class Failed(Exception):
    """A command did not do what the documentation says."""


def until(what, attempt):
    """Waits for something that is true, and gives it."""
    deadline = time.monotonic() + patience
    while True:
        result = attempt()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Failed(f"waited {patience} s in vain: {what}")
        time.sleep(0.05)


def free_ports(count):
    """Ports that nobody has. None of those that the kernel gives to connections: between this and a daemon's start, one would get it."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = []
    for port in random.sample(range(1024, lowest), lowest - 1024):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise Failed("no port is free")


class Scene:
    """The machines, and what was typed on them."""

    def __init__(self, binaries, names):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="earshot-doc-"))
        self.typed = set()
        self.running = []
        self.devices = 0
        self.daemons = {}
        self.tools = self.place / "tools"
        self.tools.mkdir()
        # What a person has at hand, and what needs another user: sudo runs the command as who is here.
        self.tool("sudo", 'while [ "${1#-}" != "$1" ]; do shift 2; done; exec "$@"')
        self.tool("make", "echo built")
        self.path = f"{self.tools}:{binaries}:{os.environ['PATH']}"
        self.ports = dict(zip(names, free_ports(len(names))))
        for name in names:
            self.start_daemon(name)

    def tool(self, name, script):
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def home(self, name):
        home = self.place / name
        (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
        return home

    def environment(self, name):
        home = self.home(name)
        return {
            "PATH": self.path, "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "LC_ALL": "C.UTF-8",
            "S": str(home / "run/earshot/earshot.sock"), "EARSHOT_DISCOVERY_BACKEND": "none",
        }

    def start_daemon(self, name):
        others = ",".join(f"127.0.0.1:{port}" for other, port in self.ports.items() if other != name)
        environment = self.environment(name) | {"EARSHOT_DISCOVERY_PEERS": others}
        command = f"exec earshotd --name {name} --port {self.ports[name]}"
        with open(self.place / f"{name}.log", "ab") as log:
            daemon = subprocess.Popen(["bash", "-c", command], env=environment, cwd=self.home(name), stdout=log, stderr=log)
        self.running.append(daemon)
        self.daemons[name] = daemon

        def answers():
            if daemon.poll() is not None:
                raise Failed(f"{name}'s daemon has ended with {daemon.returncode}: {(self.place / f'{name}.log').read_text()}")
            return self.quiet(name, "earshot status").returncode == 0

        until(f"{name}'s daemon answers", answers)

    def quiet(self, name, command):
        """A command that is no part of the documentation."""
        return subprocess.run(
            ["bash", "-c", command], env=self.environment(name), cwd=self.home(name), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=patience,
        )

    def json(self, name, command):
        done = self.quiet(name, f"{command} --json")
        if done.returncode != 0:
            raise Failed(f"{name}$ {command} --json: {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def events(self, name):
        """What has happened there so far, as the API tells it."""
        done = self.quiet(name, "curl -s --max-time 1 --unix-socket $S 'http://localhost/v1/events?since=0'")
        return [json.loads(line) for line in done.stdout.splitlines() if line.endswith("}")]

    # What is typed

    def run(self, name, command, status=0, says=""):
        """Types a command of the documentation, which ends by itself."""
        self.typed.add((name, command))
        done = self.quiet(name, command)
        if done.returncode not in (status if isinstance(status, tuple) else (status,)):
            raise Failed(f"{name}$ {command}\nended with {done.returncode} instead of {status}:\n{done.stdout}{done.stderr}")
        if not re.search(says, done.stdout + done.stderr):
            raise Failed(f"{name}$ {command}\ndid not say {says!r}:\n{done.stdout}{done.stderr}")
        print(f"  {name}$ {command}")
        return done.stdout

    def begin(self, name, command):
        """Types one that goes on."""
        self.typed.add((name, command))
        output = self.place / f"output-{len(self.typed)}"
        with open(output, "wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", command], env=self.environment(name), cwd=self.home(name), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )
        self.running.append(process)
        print(f"  {name}$ {command} &")
        return Begun(process, output, f"{name}$ {command}")

    def device(self, *words):
        """Starts a LocalSend device named phone, in a directory of its own."""
        program = pathlib.Path(__file__).resolve().parents[1] / "LAN/localsend_peer"
        self.devices += 1
        output = self.place / f"device-{self.devices}"
        command = ["python3", program, "--identity", self.home("phone") / "identity", "--alias", "phone", *words]
        with open(output, "wb") as file:
            process = subprocess.Popen(
                command, cwd=self.home("phone"), env=self.environment("phone"), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )
        self.running.append(process)
        return Begun(process, output, " ".join(str(word) for word in command))

    def register(self, name, port, certificate, key, own_port):
        """Tells a machine of the device named phone, as if it had heard its announcement."""
        fingerprint = self.quiet(name, f"openssl x509 -in {certificate} -outform DER | sha256sum").stdout.split()[0].upper()
        device = {
            "alias": "phone", "version": "2.2", "fingerprint": fingerprint, "port": int(own_port), "protocol": "https", "download": False,
        }
        done = self.quiet(
            name, f"curl -s --fail --insecure --cert {certificate} --key {key} -H 'Content-Type: application/json' "
            f"-d '{json.dumps(device)}' https://127.0.0.1:{port}/api/localsend/v2/register")
        if done.returncode != 0:
            raise Failed(f"the phone cannot register: {done}")

    def at_terminal(self, name, command, question, answer):
        """Types one at a terminal, and answers what it asks there; what it said, once `finish` is called."""
        self.typed.add((name, command))
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["bash", "-c", command], env=self.environment(name), cwd=self.home(name), stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.running.append(process)
        print(f"  {name}$ {command} (at a terminal)")

        def finish():
            said = b""
            answered = False
            while True:
                try:
                    said += os.read(ours, 4096)
                except OSError:
                    break
                if not answered and question.encode() in said:
                    answered = True
                    os.write(ours, answer.encode() + b"\n")
            os.close(ours)
            if process.wait(timeout=patience) != 0:
                raise Failed(f"{name}$ {command}\nended with {process.returncode}:\n{said.decode()}")
            return said.decode().replace("\r\n", "\n")

        return finish

    def close(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
        for process in self.running:
            process.wait(timeout=patience)
        shutil.rmtree(self.place)


class Begun:
    """A command on its way."""

    def __init__(self, process, output, words):
        self.process, self.output, self.words = process, output, words

    def said(self):
        return self.output.read_text(errors="replace")

    def says(self, pattern):
        """Waits until it has said this."""
        until(f"{self.words} says {pattern!r}; it said:\n{self.said()}", lambda: re.search(pattern, self.said()))

    def ends(self, status=0):
        """Waits for its end."""
        if self.process.wait(timeout=patience) != status:
            raise Failed(f"{self.words}\nended with {self.process.returncode} instead of {status}:\n{self.said()}")

    def interrupt(self):
        """Ctrl-C, to all that the command has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(timeout=patience)
