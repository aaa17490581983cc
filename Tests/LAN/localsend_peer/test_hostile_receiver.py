"""Receivers whose answers break each rule."""

import json
import socket
import threading

import http11
import identity as identities
import offers
import sender
from case import Case, broken, directory, mine, theirs
from log import Log


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
                ("http-status-line", b"200 OK\r\n\r\n", send), ("http-version", b"HTTP/1.0 403 No\r\n\r\n", send),
                ("http-framing", b"HTTP/1.1 200 OK\r\n\r\n", send),
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
                ("session", "b", offers.Peer("127.0.0.1", mine.fingerprint)), ("address", "a", offers.Peer("10.0.0.1", mine.fingerprint)),
                ("certificate-changed", "a", offers.Peer("127.0.0.1", theirs.fingerprint))):
            making.cancelled_by_receiver(session, peer)
            self.assertEqual(self.said.violations[-1], rule)
