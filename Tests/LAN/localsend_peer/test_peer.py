"""The strict peer against itself on loopback: every status, and every rule broken once."""

import json
import os
import socket
import ssl
import tempfile
import threading
import time
import unittest

import discovery
import http11
import identity as identities
import receiver
import sender
from log import Log
from rules import RULES

# Version 1, RSA of 1024 bits, and expired in 2021.
BAD_CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBoTCCAQoCAQEwDQYJKoZIhvcNAQELBQAwGTEXMBUGA1UEAwwOTG9jYWxTZW5k
IFVzZXIwHhcNMjAwMTAxMDAwMDAwWhcNMjEwMTAxMDAwMDAwWjAZMRcwFQYDVQQD
DA5Mb2NhbFNlbmQgVXNlcjCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkCgYEAr9ly
9Jc1dNcI8X1kwpXQc62Zrsa0TRTBWG/EojmbNPCkJVOuKqDqu+of7L+NPShLSryv
AXC5eiQ4ac1Z+vraBwJDYh8grjqB+KIEzhsUIvKbUfQX3ID6+4tpwdWgiSWudSXs
HLXr1CZifjl8Y32XR/0bibwyctjwHElzpBbWzzUCAwEAATANBgkqhkiG9w0BAQsF
AAOBgQA1TRN+uelvJrjrTskIJqo+6NGW+d+bUiKRnXi6+jl8uX99x1PpTHJWBZp6
g7RVovhzcJ4Jy56puaK8qtZenHvwjhIVcKUWmcUctYOInvPNs89PtxPM3zn8haB2
Ybl3e7gaJGHud7G6KCWxgMjdAGbPztxs1LfacardgKUw22T2wg==
-----END CERTIFICATE-----
"""

broken = {"internal"}


def setUpModule():
    global place, mine, theirs, directory
    place = tempfile.TemporaryDirectory()
    mine, theirs = (identities.Identity(f"{place.name}/{name}") for name in ("mine", "theirs"))
    directory = f"{place.name}/holiday"
    os.makedirs(f"{directory}/day one")
    for name, content in (("a.txt", b"a"), ("day one/b.bin", os.urandom(300_000)), ("empty", b"")):
        with open(f"{directory}/{name}", "wb") as file:
            file.write(content)


def tearDownModule():
    place.cleanup()
    if missing := RULES.keys() - broken:
        raise AssertionError(f"no test breaks {sorted(missing)}")


class Case(unittest.TestCase):
    def setUp(self):
        self.heard, self.said = Log(), Log()
        self.out = tempfile.mkdtemp(dir=place.name)

    def serve(self, **options):
        options = {"directory": self.out, "bind": "127.0.0.1", **options}
        server = receiver.Receiver(mine, receiver.Options(**options), self.heard, other=theirs if "other_after" in options else None)
        self.addCleanup(server.close)
        return server

    def sender(self, server, **options):
        options = {"identity": theirs, "fingerprint": mine.fingerprint, **options}
        made = sender.Sender("127.0.0.1", server.port, sender.Options(**options), self.said)
        own = receiver.Receiver(theirs, receiver.Options(bind="127.0.0.1"), Log(), on_cancel=made.cancelled_by_receiver)
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


class ExchangeTests(Case):
    def test_files_arrive(self):
        with open(f"{directory}/day one/b.bin", "rb") as file:
            content = file.read()
        for options in ({}, {"checksums": True, "parallel": 2}, {"with_length": True}):
            with self.subTest(options):
                self.assertTrue(self.exchange(items=sender.Item.below(directory), **options))
        with open(f"{self.out}/holiday/day one/b.bin", "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertEqual(os.path.getsize(f"{self.out}/holiday/empty"), 0)
        self.clean()

    def test_text(self):
        self.assertTrue(self.exchange(items=[sender.Item.text("grüezi")]))
        self.assertEqual(self.heard.named("offered")[0]["text"], "grüezi")
        self.assertTrue(self.exchange({"text": "200"}, [sender.Item.text("grüezi")]))
        self.assertEqual(self.statuses("prepare-upload"), [204, 200])
        self.clean()

    def test_some_files(self):
        self.assertFalse(self.exchange({"only": ("holiday/a.txt",)}, sender.Item.below(directory)))
        self.assertEqual(self.said.named("accepted")[0]["files"], ["holiday/a.txt"])
        self.heard.wait("finished")
        self.clean()

    def test_without_a_certificate(self):
        for asking in ("optional", "none"):
            self.assertTrue(self.exchange({"asking": asking}, identity=None))
        self.clean()
        self.assertFalse(self.exchange(identity=None))
        self.assertEqual(self.heard.wait("violation")[0]["rule"], "certificate-missing")

    def test_statuses_of_offers(self):
        for serving, options, expected in (
                ({"answer": "none"}, {}, 204), ({"answer": "reject"}, {}, 403), ({"answer": "busy"}, {}, 409),
                ({"space": 10}, {}, 507), ({"prepare_status": 500}, {}, 500), ({"prepare_status": 429}, {}, 429),
                ({"pin": "123456"}, {}, 401), ({"pin": "123456"}, {"pin": "654321"}, 401),
                ({"pin": "123456"}, {"pin": "123456"}, 200)):
            with self.subTest(serving):
                self.exchange(serving, **options)
                self.assertEqual(self.statuses("prepare-upload")[-1], expected)
        self.clean()

    def test_the_fourth_wrong_pin(self):
        server = self.serve(pin="123456")
        for pin in ("1", "2", None, "3", "123456"):
            self.sender(server, pin=pin).send([sender.Item.text("a")])
        self.assertEqual(self.statuses("prepare-upload"), [401, 401, 401, 401, 429])
        self.clean()

    def test_statuses_of_uploads(self):
        for serving, expected, delivered in (
                ({"bad_checksums": 1}, [422, 200], True), ({"bad_checksums": 3}, [422] * 3, False),
                ({"upload_status": 507}, [507], False), ({"upload_status": 500}, [500], False)):
            with self.subTest(serving):
                self.said = Log()
                self.assertEqual(self.exchange(serving), delivered)
                self.assertEqual(self.statuses("upload"), expected)
        self.clean()

    def test_busy_while_a_person_decides(self):
        server = self.serve(wait=0.5)
        threading.Thread(target=self.sender(server).send, args=([sender.Item.text("a")],)).start()
        self.heard.wait("offered")
        self.assertFalse(self.sender(server).send([sender.Item.text("b")]))
        self.said.wait("answer", 2)
        self.assertEqual(self.statuses("prepare-upload"), [409, 204])
        self.clean()

    def test_information(self):
        making = self.sender(self.serve())
        for version in ("v1", "v2"):
            self.assertEqual(making.info(version)["fingerprint"], mine.fingerprint)
        self.assertEqual(making.register()["alias"], "Strict Peer")
        self.assertEqual(self.heard.named("registered")[0]["port"], making.options.port)
        self.clean()

    def test_another_certificate(self):
        server = self.serve(other_after=0)
        self.heard.wait("other-certificate")
        self.assertFalse(self.sender(server).send([sender.Item.text("a")]))
        self.said.wait("other-certificate")
        self.assertEqual(self.heard.named("offered"), [])


class EndTests(Case):
    def test_withdrawn(self):
        self.assertFalse(self.exchange({"wait": 5}, hang_up=0.1))
        self.heard.wait("withdrawn")
        self.assertFalse(self.exchange({"wait": 5}, cancel_waiting=0.1))
        self.assertEqual(self.statuses("prepare-upload"), [403])
        self.clean()

    def test_cancelled_within_a_file(self):
        self.assertFalse(self.exchange(items=list(reversed(sender.Item.below(directory))), cancel_after=100_000))
        self.assertEqual(self.heard.wait("cancelled")[0]["by"], "sender")
        # The end of its only file ends a session, before the cancel arrives.
        self.assertFalse(self.exchange(cancel_after=100_000))
        self.heard.wait("cancelled-nothing")
        self.clean()
        self.assertFalse(self.exchange({"cancel_after": 100_000}, rate=600_000))
        self.assertEqual(self.said.named("cancelled")[-1]["by"], "receiver")
        self.heard.wait("aborted", 2)
        self.clean()

    def test_cut(self):
        self.assertFalse(self.exchange({"cut_after": 100_000}))
        self.assertFalse(self.exchange({"answer": "hang-up"}))
        self.said.wait("unreachable", 2)
        self.assertFalse(self.exchange(die_after=100_000))
        self.heard.wait("aborted", 2)
        self.assertEqual(os.listdir(self.out), [])
        self.clean()

    def test_slow(self):
        began = time.monotonic()
        self.assertTrue(self.exchange({"rate": 1_500_000}, rate=1_500_000, stall_after=100_000, stall=0.1))
        self.assertGreater(time.monotonic() - began, 0.2)
        self.clean()


class HostileSenderTests(Case):
    def test_options_of_the_sender(self):
        for rule, options, kind, status in (
                ("file-name", {"name": "../x"}, "upload", 200), ("upload-size", {"size": 5}, "upload", 500),
                ("upload-size", {"size": 1 << 40}, "upload", 500), ("upload-size", {"size": 5, "with_length": True}, "upload", 500),
                ("upload-checksum", {"sha256": "0" * 64}, "upload", 422), ("file-sha256", {"sha256": "x"}, "prepare-upload", 200),
                ("query-missing", {"token": "none"}, "upload", 400), ("token", {"token": "wrong"}, "upload", 403),
                ("address", {"upload_from": "127.0.0.2"}, "upload", 403),
                ("certificate-changed", {"upload_identity": mine}, "upload", 403),
                ("fingerprint-proof", {"claim": mine.fingerprint}, "upload", 200),
                ("fingerprint-case", {"claim": "lower"}, "upload", 200), ("fingerprint-format", {"claim": "me"}, "upload", 200)):
            with self.subTest(options):
                self.exchange(**options)
                self.assertIn(rule, self.heard.violations)
                self.assertEqual(self.statuses(kind)[-1], status)
        self.assertEqual([name for name in os.listdir(place.name) if name == "x"], [])

    def test_repeated_token(self):
        self.exchange(items=sender.Item.below(directory), repeat=True)
        self.assertIn("upload-again", self.heard.violations)

    def test_cancel_from_another_address(self):
        self.exchange({"rate": 600_000}, cancel_after=100_000, upload_from="127.0.0.2")
        making = self.sender(self.serve(), skip_uploads=True)
        making.send([sender.Item.below(directory)[0]])
        making.options.upload_from = "127.0.0.2"
        making._cancel()
        self.assertIn("address", self.heard.violations)
        making.options.upload_from, making.options.upload_identity = None, mine
        making._cancel()
        self.assertIn("certificate-changed", self.heard.violations)

    def test_limits(self):
        many = [sender.Item(f"many/{number}", content=b"") for number in range(3)]
        self.assertFalse(self.exchange({"file_limit": 2}, many))
        self.assertFalse(self.exchange({"body_limit": 100}))
        self.assertEqual(self.statuses("prepare-upload"), [413, 413])
        self.assertEqual(self.heard.violations, ["file-limit", "body-limit"])

    def test_registrations(self):
        self.sender(self.serve(), claim=mine.fingerprint).register()
        self.assertEqual(len(self.heard.named("ignored")), 1)
        self.assertEqual(self.heard.violations, ["fingerprint-proof"])

    def test_documents(self):
        device = {"alias": "a", "version": "2.2", "fingerprint": theirs.fingerprint, "port": 1, "protocol": "https"}
        file = {"id": "1", "fileName": "a.txt", "size": 1, "fileType": "text/plain"}
        offer = lambda **changes: {"info": device, "files": {"1": {**file, **changes}}}
        server = self.serve(answer="none")
        for rule, route, document, status in (
                ("json-syntax", "register", b"{", 400), ("json-syntax", "register", b'"\xff"', 400),
                ("json-syntax", "register", b'{"alias": NaN}', 400), ("json-repeated", "register", b'{"alias": "a", "alias": "b"}', 400),
                ("json-type", "register", [], 400), ("json-missing", "register", {"alias": "a"}, 400),
                ("json-type", "register", {**device, "port": 65536}, 400), ("json-type", "register", {**device, "port": True}, 400),
                ("json-type", "register", {**device, "protocol": "HTTPS"}, 400), ("json-value", "register", {**device, "port": 0}, 200),
                ("json-value", "register", {**device, "version": "3"}, 200), ("json-value", "register", {**device, "alias": ""}, 200),
                ("json-value", "register", {**device, "deviceType": "fridge"}, 200),
                ("json-unknown", "register", {**device, "colour": "red"}, 200),
                ("files-none", "prepare-upload", {"info": device, "files": {}}, 400),
                ("json-type", "prepare-upload", offer(size=-1), 400), ("json-type", "prepare-upload", offer(size=1.5), 400),
                ("file-id", "prepare-upload", offer(id="2"), 204), ("file-type", "prepare-upload", offer(fileType="image"), 204),
                ("file-preview", "prepare-upload", offer(preview="abc"), 204),
                ("file-name", "prepare-upload", offer(fileName="/etc/passwd"), 204), ("file-name", "prepare-upload", offer(fileName=""), 204),
                ("file-time", "prepare-upload", offer(metadata={"modified": "yesterday"}), 204),
                ("json-type", "prepare-upload", offer(metadata=[]), 400)):
            with self.subTest(document):
                content = document if isinstance(document, bytes) else json.dumps(document).encode()
                link = sender.Link("127.0.0.1", server.port, self.said, theirs)
                self.assertEqual(link.request("POST", f"/api/localsend/v2/{route}", content)[0], status)
                self.assertIn(rule, self.heard.violations)
                broken.update(self.heard.violations)
                self.heard.events.clear()
                link.close()

    def test_requests(self):
        server = self.serve(wait=1)
        offer = json.dumps({
            "info": {"alias": "a", "version": "2.2", "fingerprint": theirs.fingerprint, "port": 1, "protocol": "https"},
            "files": {"1": {"id": "1", "fileName": "a", "size": 1, "fileType": "a/b"}}}).encode()
        post = b"POST /api/localsend/v2/%b HTTP/1.1\r\nhost: a\r\n%b\r\n"
        for rule, request, status in (
                ("http-request-line", b"GET /\r\n\r\n", 400), ("http-host", b"GET /api/localsend/v2/info HTTP/1.1\r\n\r\n", 400),
                ("http-head", b"GET / HTTP/1.1\nhost: a\r\n\r\n", 400), ("http-head", post % (b"cancel", b"content-length: 0\r\n" * 2), 400),
                ("http-head", post % (b"cancel", b"a" * 17_000), 400), ("http-head", post % (b"cancel", b" folded\r\n"), 400),
                ("http-framing", post % (b"register", b"content-length: +1\r\n"), 400),
                ("http-framing", post % (b"register", b"content-length: 3\r\ntransfer-encoding: chunked\r\n"), 400),
                ("http-framing", post % (b"register", b"transfer-encoding: gzip\r\n"), 400),
                ("http-framing", post % (b"register", b"transfer-encoding: chunked\r\n") + b"x\r\n", 400),
                ("http-framing", post % (b"register", b"transfer-encoding: chunked\r\n") + b"1\r\nabc", 400),
                ("path", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", 404), ("method", b"GET /api/localsend/v2/cancel HTTP/1.1\r\nhost: a\r\n\r\n", 404),
                ("query-unknown", post % (b"cancel?a=b", b""), 200),
                ("query-repeated", post % (b"cancel?sessionId=1&sessionId=2", b""), 200),
                ("session", post % (b"upload?sessionId=1&fileId=1&token=1", b""), 403),
                ("http-pipelining", post % (b"prepare-upload", b"content-length: %d\r\n" % len(offer)) + offer + b"GET", 400)):
            with self.subTest(request[:60]):
                link = sender.Link("127.0.0.1", server.port, self.said, theirs)
                link.stream.send(request)
                self.assertEqual(http11.Answer(link.stream).status, status)
                self.assertIn(rule, self.heard.violations)
                broken.update(self.heard.violations)
                self.heard.events.clear()
                link.close()

    def test_plain_http(self):
        with socket.create_connection(("127.0.0.1", self.serve().port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            self.assertEqual(self.heard.wait("violation")[0]["rule"], "tls")

    def test_certificates(self):
        self.assertEqual(identities.faults_of(mine.der), [])
        bad = identities.faults_of(ssl.PEM_cert_to_DER_cert(BAD_CERTIFICATE))
        self.assertEqual(bad, ["certificate-version", "certificate-key", "certificate-dates"])
        forged = identities.faults_of(mine.der[:-1] + bytes([mine.der[-1] ^ 1]))
        self.assertEqual(forged, ["certificate-signature"])
        broken.update(bad + forged)


class HostileReceiverTests(Case):
    """A receiver that answers every request with the same bytes."""

    def answer(self, data, request):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            connection, _ = listener.accept()
            with identities.server_context(mine, "optional").wrap_socket(connection, server_side=True) as tls:
                stream = http11.Stream(tls)
                for _ in http11.body(stream, http11.Request(stream).framing()):
                    pass
                stream.send(data)
                stream.linger()

        threading.Thread(target=serve, daemon=True).start()
        making = sender.Sender("127.0.0.1", listener.getsockname()[1], sender.Options(identity=theirs), self.said)
        return request(making)

    def test_answers(self):
        ok = lambda document: b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
            len(json.dumps(document)), json.dumps(document).encode())
        info = {"alias": "a", "version": "2.2", "fingerprint": mine.fingerprint}
        send = lambda making: making.send(sender.Item.below(directory))
        for rule, data, request in (
                ("http-status-line", b"200 OK\r\n\r\n", send), ("http-version", b"HTTP/1.0 403 No\r\n\r\n", send), ("http-framing", b"HTTP/1.1 200 OK\r\n\r\n", send),
                ("http-framing", b"HTTP/1.1 204 No\r\ncontent-length: 3\r\n\r\n", send),
                ("status", b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n", send),
                ("status", b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", send),
                ("json-missing", b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n", send),
                ("content-type", b'HTTP/1.1 403 No\r\ncontent-length: 16\r\n\r\n{"message": "a"}', send),
                ("json-syntax", b"HTTP/1.1 403 No\r\ncontent-length: 1\r\n\r\n{", send),
                ("json-missing", ok({"files": {}}), send), ("file", ok({"sessionId": "a", "files": {"b": "c"}}), send),
                ("token", ok({"sessionId": "a", "files": {"b": "c", "d": "c"}}), send),
                ("fingerprint-proof", ok({**info, "fingerprint": theirs.fingerprint}), lambda making: making.info()),
                ("json-unknown", ok({**info, "port": 1}), lambda making: making.info())):
            with self.subTest(data):
                self.said = Log()
                self.answer(data, request)
                self.assertIn(rule, self.said.violations)
                broken.update(self.said.violations)

    def test_cancels_of_others(self):
        making = sender.Sender("127.0.0.1", 1, sender.Options(identity=theirs, fingerprint=mine.fingerprint), self.said)
        making.session = "a"
        for rule, session, peer in (
                ("session", "b", receiver.Peer("127.0.0.1", mine.fingerprint)), ("address", "a", receiver.Peer("10.0.0.1", mine.fingerprint)),
                ("certificate-changed", "a", receiver.Peer("127.0.0.1", theirs.fingerprint))):
            making.cancelled_by_receiver(session, peer)
            self.assertEqual(self.said.violations[-1], rule)


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


if __name__ == "__main__":
    unittest.main()
