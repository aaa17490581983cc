"""Announcements, true and forged, on the loopback interface."""

import json
import socket

import discovery
from case import Case, mine, theirs


class DiscoveryTests(Case):
    def setUp(self):
        super().setUp()
        discovery.DELAYS, before = (0.01, 0.01, 0.01), discovery.DELAYS
        self.addCleanup(setattr, discovery, "DELAYS", before)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def discovery(self, identity, log, device, **options):
        made = discovery.Discovery(device, identity, log, "lo", self.port, **options)
        self.addCleanup(made.close)
        return made

    def test_announcements_are_answered(self):
        server = self.serve()
        announcing = self.discovery(mine, self.heard, server.device)
        device = {**server.device(), "alias": "Listener", "fingerprint": theirs.fingerprint, "port": 1}
        self.discovery(theirs, self.said, lambda: device)
        announcing.announce()
        self.said.wait("seen", 3)
        self.assertEqual(self.said.wait("confirmed")[0]["fingerprint"], mine.fingerprint)
        self.assertEqual(self.heard.wait("registered")[0]["alias"], "Listener")
        self.clean()

    def test_forged_announcements(self):
        server = self.serve()
        device = {**server.device(), "fingerprint": theirs.fingerprint}
        self.discovery(theirs, self.said, lambda: device)
        discovery.forge(5, self.heard, server.device(), "lo", port=self.port)
        self.assertEqual(len({line["fingerprint"] for line in self.said.wait("seen", 5)}), 5)
        discovery.forge(1, self.heard, server.device(), "lo", port=self.port, claim="A" * 64)
        # The certificate is not the announced one: nothing was sent, and the answer is a datagram.
        self.said.wait("unconfirmed", 6)
        self.assertEqual(self.said.wait("announced")[0]["announce"], False)
        self.assertEqual(self.heard.named("registered"), [])

    def test_a_flood_is_answered_in_part(self):
        server = self.serve()
        self.discovery(theirs, self.said, lambda: {**server.device(), "fingerprint": theirs.fingerprint})
        # A connection to this socket is never answered: the first places stay taken for the time of a registration.
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        device = {**server.device(), "port": silent.getsockname()[1]}
        discovery.forge(100, self.heard, device, "lo", port=self.port)
        self.said.wait("unanswered", 100 - discovery.REGISTRATIONS)
        self.assertEqual(len(self.said.named("seen")), 100)

    def test_datagrams(self):
        device = self.serve().device()
        self.discovery(theirs, self.said, lambda: {**device, "fingerprint": theirs.fingerprint}, answers=False)
        index, _, address = next(iter(discovery.interfaces("lo")))
        made = discovery.multicast_socket(discovery.GROUP, self.port, index, address)
        self.addCleanup(made.close)
        for rule, data, hops in (
                ("json-syntax", b"{", 1), ("json-missing", json.dumps(device).encode(), 1),
                ("multicast-hops", json.dumps({**device, "announce": True}).encode(), 9)):
            made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
            count = len(self.said.violations) + 1
            made.sendto(data, (discovery.GROUP, self.port))
            self.assertEqual(self.said.wait("violation", count)[-1]["rule"], rule)
