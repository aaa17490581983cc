"""The identities, files and helpers that the peer's tests share."""

import os
import tempfile
import unittest

import identity as identities
import offers
import receiver
import sender
from log import Log

# The rules that the tests have broken.
broken = {"internal"}

place = tempfile.TemporaryDirectory()
mine, theirs = (identities.Identity(f"{place.name}/{name}") for name in ("mine", "theirs"))
directory = f"{place.name}/holiday"
os.makedirs(f"{directory}/day one")
for name, content in (("a.txt", b"a"), ("day one/b.bin", os.urandom(300_000)), ("empty", b"")):
    with open(f"{directory}/{name}", "wb") as file:
        file.write(content)


class Case(unittest.TestCase):
    def setUp(self):
        self.heard, self.said = Log(), Log()
        self.out = tempfile.mkdtemp(dir=place.name)

    def serve(self, **options):
        options = {"directory": self.out, "bind": "127.0.0.1", **options}
        server = receiver.Receiver(mine, offers.Options(**options), self.heard, other=theirs if "other_after" in options else None)
        self.addCleanup(server.close)
        return server

    def sender(self, server, **options):
        options = {"identity": theirs, "fingerprint": mine.fingerprint, **options}
        made = sender.Sender("127.0.0.1", server.port, sender.Options(**options), self.said)
        own = receiver.Receiver(theirs, offers.Options(bind="127.0.0.1"), Log(), on_cancel=made.cancelled_by_receiver)
        self.addCleanup(own.close)
        made.options.port = own.port
        return made

    def exchange(self, serving=None, items=None, **options):
        """Sends to a new receiver, and returns whether it was delivered."""
        server = self.serve(**(serving or {}))
        return self.sender(server, **options).send(items or sender.Item.below(f"{directory}/day one/b.bin"))

    def statuses(self, request):
        return [line["status"] for line in self.said.named("answer") if line["request"] == request]

    def tearDown(self):
        broken.update(self.heard.violations, self.said.violations)

    def clean(self):
        self.assertEqual((self.heard.violations, self.said.violations), ([], []))
