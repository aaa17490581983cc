"""One connection to a receiver, whose answers are checked."""

import socket

import http11
import identity as identities
import shapes

# The statuses of each request; 404 is no answer to a known route.
STATUSES = {
    "info": {200}, "register": {200, 400, 413},
    "prepare-upload": {200, 204, 400, 401, 403, 409, 413, 429, 500, 507},
    "upload": {200, 400, 403, 409, 413, 422, 500, 507}, "cancel": {200},
}


class Unreachable(Exception):
    """No connection, or no answer."""


class OtherCertificate(Unreachable):
    """The receiver is not the expected one; nothing was sent."""


class Link:
    """A connection to a receiver."""

    def __init__(self, host, port, log, identity, fingerprint=None, source=None, timeout=30):
        self.log = log
        self.host = host
        context = identities.client_context(identity)
        try:
            raw = socket.create_connection((host, port), timeout, (source, 0) if source else None)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = context.wrap_socket(raw)
        except OSError as error:
            raise Unreachable(str(error)) from error
        der = connection.getpeercert(binary_form=True)
        self.fingerprint = identities.fingerprint_of(der)
        for rule in identities.faults_of(der):
            log.violation(rule, address=host)
        if fingerprint is not None and self.fingerprint != fingerprint.upper():
            connection.close()
            log.event("other-certificate", fingerprint=self.fingerprint, expected=fingerprint.upper())
            raise OtherCertificate(self.fingerprint)
        if connection.selected_alpn_protocol() not in (None, "http/1.1"):
            log.violation("tls", f"ALPN {connection.selected_alpn_protocol()}")
        self.stream = http11.Stream(connection)
        self._authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close(self):
        self.stream.close()

    def request(self, method, target, content=b"", kind=None, pieces=None, length=None, hang_up=None):
        """Sends a request and returns the status and the document. `pieces` are sent as chunks, unless `length` is given.
        `hang_up` closes the connection if no answer came within that time."""
        lines = [f"{method} {target} HTTP/1.1", f"host: {self._authority}", "accept: */*"]
        if pieces is not None:
            lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
        elif method == "POST":
            lines.append(f"content-length: {len(content)}")
            if content:
                lines.append("content-type: application/json")
        try:
            try:
                self.stream.send(("\r\n".join(lines) + "\r\n\r\n").encode() + content)
                if pieces is not None:
                    self._send_pieces(pieces, length is None)
            except http11.Closed:
                # An answer that refuses the rest of the body may already be here.
                pass
            if hang_up is not None and not self.stream.hears(hang_up):
                self.close()
                raise Unreachable("hung up")
            self.stream.connection.settimeout(None if hang_up is None and kind == "prepare-upload" else 60)
            return self._answer(kind or target)
        except (http11.Closed, OSError) as error:
            raise Unreachable(str(error)) from error
        except http11.Malformed as error:
            self.log.violation(error.rule, error.detail)
            raise Unreachable(str(error)) from error

    def _send_pieces(self, pieces, chunked):
        for piece in pieces:
            if self.stream.is_readable() and self.stream.has_ended():
                raise http11.Closed("refused")
            if self.stream.has_bytes():
                return
            self.stream.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self.stream.send(b"0\r\n\r\n")

    def _answer(self, kind):
        answer = http11.Answer(self.stream)
        content = b"".join(http11.body(self.stream, answer.framing()))
        document = None
        if answer.is_old:
            self.log.violation("http-version", "HTTP/1.0")
        if not answer.keeps:
            self.close()
        if answer.status not in STATUSES.get(kind, {answer.status}):
            self.log.violation("status", f"{kind} answered {answer.status}")
        if 300 <= answer.status < 400:
            self.log.violation("status", "a redirect")
        if content:
            if not answer.headers.get("content-type", "").startswith("application/json"):
                self.log.violation("content-type", answer.headers.get("content-type", "none"))
            try:
                document = shapes.parse(content)
                if answer.status >= 400:
                    shapes.check(document, shapes.FAILURE, "answer", self.log.violation)
            except shapes.Wrong as error:
                self.log.violation(error.rule, error.detail)
                document = None
        elif answer.status >= 400 and answer.status != 404:
            self.log.violation("json-missing", f"{answer.status} without a message")
        return answer.status, document
