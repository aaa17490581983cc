"""Announcements over multicast: sends them as LocalSend 1.18 does, answers those of others, and forges them."""

import fcntl
import json
import select
import socket
import struct
import threading
import time

import shapes
from link import Link, Unreachable

GROUP = "224.0.0.167"
GROUP6 = "ff12::fd3a:e420"
PORT = 53317
# Each wait follows the one before, so that announcements leave after 0.1, 0.6 and 2.6 s.
DELAYS = (0.1, 0.5, 2.0)
REGISTER_TIMEOUT = 0.5
# Bounds of this program, for a flood of announcements: registrations at a time, and seconds between two answers by UDP.
REGISTRATIONS = 32
FALLBACK_INTERVAL = 1
SIOCGIFADDR = 0x8915
# From linux/in.h, since Python has no names for them.
IP_RECVTTL = 12
IP_TRANSPARENT = 19
IP_MULTICAST_ALL = 49


def interfaces(wanted=None):
    """The index, name and IPv4 address (or None) of each interface, without loopback unless it is wanted."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for index, name in socket.if_nameindex():
            if name == "lo" if wanted is None else name != wanted:
                continue
            try:
                answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()))
                yield index, name, socket.inet_ntoa(answer[20:24])
            except OSError:
                yield index, name, None


def multicast_socket(group, port, index, address):
    """A socket that sends to a group on one interface, and receives from it."""
    six = ":" in group
    made = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if six:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        made.bind(("::", port))
        membership = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", index)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
    else:
        request = socket.inet_aton(group) + socket.inet_aton(address) + struct.pack("@i", index)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        made.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        # Without it, every socket of this port would also receive what arrives on other interfaces.
        made.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
        made.bind(("0.0.0.0", port))
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
    return made


class Discovery:
    """The announcements of one device on all interfaces. `device()` returns what it says of itself."""

    def __init__(self, device, identity, log, interface=None, port=PORT, answers=True, fallback=True):
        self.device = device
        self.identity = identity
        self.log = log
        self.port = port
        self.answers = answers
        self.fallback = fallback
        self._registrations = threading.Semaphore(REGISTRATIONS)
        self._last_fallback = float("-inf")
        self._sockets = []
        for index, name, address in interfaces(interface):
            for group in (GROUP, GROUP6):
                if group == GROUP and address is None:
                    continue
                try:
                    self._sockets.append((multicast_socket(group, port, index, address), (group, port), name))
                except OSError as error:
                    # An interface without IPv6, for example.
                    self.log.event("skipped", interface=name, group=group, reason=str(error))
        if not self._sockets:
            raise OSError("no interface has multicast")
        self._stop, self._stopper = socket.socketpair()
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self):
        self._stopper.close()

    def announce(self):
        for delay in DELAYS:
            time.sleep(delay)
            self.say(True)

    def say(self, announce):
        data = json.dumps({**self.device(), "announce": announce}).encode()
        for made, target, name in self._sockets:
            try:
                made.sendto(data, target)
            except OSError as error:
                self.log.event("skipped", interface=name, group=target[0], reason=str(error))
        self.log.event("announced", announce=announce)

    def _listen(self):
        sockets = [made for made, _, _ in self._sockets]
        while True:
            readable, _, _ = select.select(sockets + [self._stop], [], [])
            if self._stop in readable:
                for made in sockets + [self._stop]:
                    made.close()
                return
            for made in readable:
                data, ancillary, _, source = made.recvmsg(65536, 64)
                hops = next((struct.unpack("@i", value[:4])[0] for _, _, value in ancillary if len(value) >= 4), None)
                self._hear(data, source, hops)

    def _hear(self, data, source, hops):
        host = source[0]
        if len(source) == 4 and source[3]:
            host = f"{host.partition('%')[0]}%{socket.if_indextoname(source[3])}"
        report = lambda rule, detail=None: self.log.violation(rule, detail, address=host)
        try:
            document = shapes.parse(data)
            if isinstance(document, dict) and document.get("fingerprint") == self.device()["fingerprint"]:
                return
            shapes.check_device(document, shapes.ANNOUNCEMENT, "datagram", report)
        except shapes.Wrong as error:
            report(error.rule, error.detail)
            return
        if hops is not None and hops > 1:
            report("multicast-hops", f"TTL {hops}")
        if "announce" not in document:
            report("json-missing", "datagram.announce")
        self.log.event(
            "seen", alias=document["alias"], fingerprint=document["fingerprint"], address=host, port=document["port"],
            protocol=document["protocol"], announce=document.get("announce"))
        if self.answers and document.get("announce") is not False:
            if self._registrations.acquire(blocking=False):
                threading.Thread(target=self._answer, args=(host, document), daemon=True).start()
            else:
                self.log.event("unanswered", fingerprint=document["fingerprint"], address=host)

    def _answer(self, host, document):
        try:
            self._register(host, document)
        finally:
            self._registrations.release()

    def _register(self, host, document):
        """Answers an announcement; the announced fingerprint is pinned, so that nothing is sent to another device."""
        try:
            if document["protocol"] != "https":
                raise Unreachable("plain HTTP")
            link = Link(host, document["port"], self.log, self.identity, document["fingerprint"], timeout=REGISTER_TIMEOUT)
            status, answer = link.request(
                "POST", "/api/localsend/v2/register", json.dumps(self.device()).encode(), kind="register")
            shapes.check_device(answer, shapes.INFO, "answer", self.log.violation, link.fingerprint)
            link.close()
            self.log.event("confirmed", alias=answer["alias"], fingerprint=link.fingerprint, address=host, port=document["port"])
        except shapes.Wrong as error:
            self.log.violation(error.rule, error.detail, address=host)
        except Unreachable as error:
            self.log.event("unconfirmed", fingerprint=document["fingerprint"], address=host, reason=str(error))
            if self.fallback and time.monotonic() - self._last_fallback >= FALLBACK_INTERVAL:
                self._last_fallback = time.monotonic()
                # For LocalSend 1.17 and older; 1.18 takes it as an announcement.
                self.say(False)


def forge(count, log, device, interface=None, sources=None, port=PORT, to=None, claim=None, alias=None):
    """Sends forged announcements. Their fingerprints differ unless `claim` is given. `sources` is the first address of the
    forged senders and their number, on the link; it needs CAP_NET_ADMIN."""
    index, name, own = next(iter(interfaces(interface)))
    addresses = [own]
    if sources is not None:
        first = struct.unpack("!I", socket.inet_aton(sources[0]))[0]
        addresses = [socket.inet_ntoa(struct.pack("!I", first + number)) for number in range(sources[1])]
    made = []
    for address in addresses:
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if address != own:
            sender.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("@4s4si", b"\0" * 4, socket.inet_aton(own), index))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        sender.bind((address, port))
        made.append(sender)
    for number in range(count):
        fingerprint = claim or f"{number:064X}"
        data = {**device, "alias": alias or f"Forged {number}", "fingerprint": fingerprint, "announce": True}
        made[number % len(made)].sendto(json.dumps(data).encode(), (to or GROUP, port))
    log.event("forged", count=count, addresses=len(made))
    for sender in made:
        sender.close()
