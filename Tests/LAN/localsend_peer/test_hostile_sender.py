"""Senders that break each rule of an offer, an upload and a request."""

import json
import os
import socket
import ssl

import http11
import identity as identities
import sender
from case import Case, broken, directory, mine, place, theirs

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
                ("file-name", "prepare-upload", offer(fileName="/etc/passwd"), 204),
                ("file-name", "prepare-upload", offer(fileName=""), 204),
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
                ("http-head", b"GET / HTTP/1.1\nhost: a\r\n\r\n", 400),
                ("http-head", post % (b"cancel", b"content-length: 0\r\n" * 2), 400),
                ("http-head", post % (b"cancel", b"a" * 17_000), 400), ("http-head", post % (b"cancel", b" folded\r\n"), 400),
                ("http-framing", post % (b"register", b"content-length: +1\r\n"), 400),
                ("http-framing", post % (b"register", b"content-length: 3\r\ntransfer-encoding: chunked\r\n"), 400),
                ("http-framing", post % (b"register", b"transfer-encoding: gzip\r\n"), 400),
                ("http-framing", post % (b"register", b"transfer-encoding: chunked\r\n") + b"x\r\n", 400),
                ("http-framing", post % (b"register", b"transfer-encoding: chunked\r\n") + b"1\r\nabc", 400),
                ("path", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", 404),
                ("method", b"GET /api/localsend/v2/cancel HTTP/1.1\r\nhost: a\r\n\r\n", 404),
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
