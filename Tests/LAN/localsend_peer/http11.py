"""HTTP/1.1 on one connection, for both sides, and stricter than libraries are: bare line feeds, folded headers and
ambiguous framing are faults."""

import re
import select
import socket
import ssl
import time
import urllib.parse

HEAD_LIMIT = 16 * 1024
# The length of an answer of HTTP/1.0 without one.
UNTIL_CLOSED = 1 << 62
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


class Closed(Exception):
    """The other side closed or reset the connection."""


class Malformed(Exception):
    """The other side broke a rule, so that the rest of the connection means nothing."""

    def __init__(self, rule, detail):
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail


class Stream:
    """The bytes of a connection, in both directions."""

    def __init__(self, connection):
        self.connection = connection
        self.is_open = True
        self._unread = b""

    def receive(self, size=64 * 1024):
        if self._unread:
            data, self._unread = self._unread[:size], self._unread[size:]
            return data
        try:
            data = self.connection.recv(size)
        except socket.timeout:
            raise
        except OSError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed("end of stream")
        return data

    def exactly(self, size):
        data = bytearray()
        while len(data) < size:
            data += self.receive(size - len(data))
        return bytes(data)

    def line(self):
        data = bytearray()
        while not data.endswith(b"\n"):
            data += self.receive(1)
            if len(data) > HEAD_LIMIT:
                raise Malformed("http-head", "a line of more than 16 KiB")
        if not data.endswith(b"\r\n"):
            raise Malformed("http-head", "a line without a carriage return")
        return bytes(data[:-2])

    def send(self, data):
        try:
            self.connection.sendall(data)
        except socket.timeout:
            raise
        except OSError as error:
            raise Closed(str(error)) from error

    def is_readable(self, seconds=0, wake=None):
        """Whether bytes or an end arrive within `seconds`; `wake` is a descriptor that ends the wait."""
        if self._unread or getattr(self.connection, "pending", lambda: 0)():
            return True
        readable, _, _ = select.select([self.connection] + ([] if wake is None else [wake]), [], [], seconds)
        return self.connection in readable

    def hears(self, seconds):
        """Whether bytes of a message or an end arrive within `seconds`; records of TLS itself do not count."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.is_readable(left) and (self.has_ended() or self._unread):
                return True
        return False

    def has_ended(self):
        """Whether the other side closed. Call it only if the connection is readable."""
        timeout = self.connection.gettimeout()
        try:
            self.connection.settimeout(0)
            data = self.connection.recv(4096)
        except ssl.SSLWantReadError:
            return False
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(timeout)
        self._unread += data
        return not data

    def has_bytes(self):
        return bool(self._unread)

    def linger(self, seconds=0.5):
        """Discards what the other side still sends, so that a reset does not overtake our answer."""
        try:
            self.connection.settimeout(seconds)
            self.connection.shutdown(socket.SHUT_WR)
            while self.connection.recv(64 * 1024):
                pass
        except (OSError, ValueError):
            pass

    def close(self):
        self.is_open = False
        try:
            self.connection.close()
        except OSError:
            pass


class Head:
    """The first line and the headers of a request or an answer."""

    def __init__(self, stream):
        self.first = stream.line()
        self.headers = {}
        size = 0
        while line := stream.line():
            size += len(line)
            if size > HEAD_LIMIT:
                raise Malformed("http-head", "headers of more than 16 KiB")
            name, colon, value = line.partition(b":")
            if not colon or not _TOKEN.match(name):
                raise Malformed("http-head", f"no header: {line[:80]!r}")
            key = name.decode().lower()
            if key in self.headers and key in ("host", "content-length", "transfer-encoding", "content-type"):
                raise Malformed("http-head", f"{key} twice")
            self.headers[key] = value.strip(b" \t").decode("latin-1")

    @property
    def keeps(self):
        return self.headers.get("connection", "").lower() != "close"

    def framing(self):
        """The length of the body: a number, or None for chunks."""
        coding = self.headers.get("transfer-encoding")
        length = self.headers.get("content-length")
        if coding is not None and length is not None:
            raise Malformed("http-framing", "both Content-Length and Transfer-Encoding")
        if coding is not None:
            if coding.lower() != "chunked":
                raise Malformed("http-framing", f"Transfer-Encoding {coding}")
            return None
        if length is None:
            return 0
        if not re.fullmatch("[0-9]{1,19}", length):
            raise Malformed("http-framing", f"Content-Length {length}")
        return int(length)


class Request(Head):
    """A request line, split into its parts."""

    def __init__(self, stream):
        super().__init__(stream)
        parts = self.first.decode("latin-1").split(" ")
        if len(parts) != 3 or parts[2] != "HTTP/1.1":
            raise Malformed("http-request-line", repr(self.first[:80]))
        self.method, self.target, _ = parts
        if "host" not in self.headers:
            raise Malformed("http-host", "no Host")
        self.path, question, query = self.target.partition("?")
        self.has_query = bool(question)
        self.query = urllib.parse.parse_qsl(query, keep_blank_values=True)


class Answer(Head):
    """A status line; the body is read by the caller."""

    def __init__(self, stream):
        super().__init__(stream)
        found = re.fullmatch(rb"HTTP/1\.([01]) ([1-5][0-9][0-9]) ?.*", self.first)
        if found is None:
            raise Malformed("http-status-line", repr(self.first[:80]))
        self.is_old = found[1] == b"0"
        self.status = int(found[2])

    @property
    def keeps(self):
        return super().keeps and not self.is_old

    def framing(self):
        if self.status in (204, 304):
            if self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers:
                raise Malformed("http-framing", f"{self.status} with a body")
            return 0
        if "content-length" not in self.headers and "transfer-encoding" not in self.headers:
            if self.is_old:
                return UNTIL_CLOSED
            raise Malformed("http-framing", "an answer without a length")
        return super().framing()


def body(stream, length, piece=64 * 1024):
    """Yields the pieces of a body as they arrive."""
    if length is not None:
        until_closed = length == UNTIL_CLOSED
        while length > 0:
            try:
                data = stream.receive(min(length, piece))
            except Closed:
                if until_closed:
                    return
                raise
            length -= len(data)
            yield data
        return
    while True:
        line = stream.line()
        size = line.split(b";")[0]
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size):
            raise Malformed("http-framing", f"chunk size {line[:40]!r}")
        left = int(size, 16)
        if left == 0:
            while stream.line():
                pass
            return
        while left > 0:
            data = stream.receive(min(left, piece))
            left -= len(data)
            yield data
        if stream.exactly(2) != b"\r\n":
            raise Malformed("http-framing", "a chunk longer than its size")


REASONS = {
    100: "Continue", 200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    409: "Conflict", 413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests",
    500: "Internal Server Error", 507: "Insufficient Storage",
}


def answer_bytes(status, content, closing):
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}"]
    if content:
        lines.append("content-type: application/json")
    if status not in (100, 204):
        lines.append(f"content-length: {len(content)}")
    if closing:
        lines.append("connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + content
