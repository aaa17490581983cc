"""A sender that asks as LocalSend 1.18 does, or as one that does not, and checks each answer of the receiver."""

import dataclasses
import datetime
import hashlib
import json
import mimetypes
import os
import threading
import time
import urllib.parse
import uuid

import identity as identities
import shapes
from link import Link, OtherCertificate, Unreachable

UPLOAD_ATTEMPTS = 3


@dataclasses.dataclass
class Options:
    """How a sender offers and uploads; all after `checksums` is what LocalSend would not do."""

    alias: str = "Strict Sender"
    pin: str = None
    fingerprint: str = None              # of the receiver, to pin
    identity: identities.Identity = None  # None shows no certificate
    checksums: bool = False
    metadata: bool = True
    parallel: int = 1
    port: int = None                     # of our own receiver
    cancel_waiting: float = None         # cancels without a session after this time
    hang_up: float = None                # closes the connection of the offer after this time
    cancel_after: int = None             # bytes of a file, after which the session is cancelled
    die_after: int = None                # bytes of a file, after which the connection is closed
    stall_after: int = None              # bytes of a file, after which nothing is sent for `stall`
    stall: float = 0
    rate: int = None                     # bytes a second
    with_length: bool = False            # Content-Length instead of chunks
    name: str = None                     # the first file's fileName
    size: int = None                     # the first file's declared size
    sha256: str = None                   # the first file's declared checksum
    claim: str = None                    # fingerprint in the body; `lower` for our own in lower case
    repeat: bool = False                 # uploads each file twice
    token: str = "right"                 # right, wrong, none
    upload_from: str = None              # source address of uploads and cancels
    upload_identity: identities.Identity = None
    skip_uploads: bool = False           # never uploads what was accepted


class Item:
    """A file or a text to send."""

    def __init__(self, name, path=None, content=None, preview=None):
        self.id = str(uuid.uuid4())
        self.name = name
        self.path = path
        self.content = content
        self.preview = preview
        self.size = len(content) if content is not None else os.stat(path).st_size

    @staticmethod
    def text(text):
        return Item(f"{uuid.uuid4()}.txt", content=text.encode(), preview=text)

    @staticmethod
    def below(path):
        """The items of a path: one file, or a directory's files with relative names."""
        if not os.path.isdir(path):
            return [Item(os.path.basename(path), path)]
        root = os.path.dirname(os.path.abspath(path))
        return [
            Item(os.path.relpath(os.path.join(folder, name), root), os.path.join(folder, name))
            for folder, folders, names in sorted(os.walk(path)) for name in sorted(names)]

    def pieces(self, size=64 * 1024):
        if self.content is not None:
            for start in range(0, len(self.content), size):
                yield self.content[start:start + size]
            return
        with open(self.path, "rb") as file:
            while piece := file.read(size):
                yield piece

    def fields(self, options):
        kind = "text/plain" if self.preview is not None else mimetypes.guess_type(self.name)[0] or "application/octet-stream"
        fields = {"id": self.id, "fileName": self.name, "size": self.size, "fileType": kind}
        if options.checksums:
            digest = hashlib.sha256()
            for piece in self.pieces():
                digest.update(piece)
            fields["sha256"] = digest.hexdigest()
        if self.preview is not None:
            fields["preview"] = self.preview
        if options.metadata and self.path is not None:
            times = os.stat(self.path)
            stamp = lambda seconds: datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat().replace("+00:00", "Z")
            fields["metadata"] = {"modified": stamp(times.st_mtime), "accessed": stamp(times.st_atime)}
        return fields


class Stopped(Exception):
    """This sender cancels or dies in the middle of a file."""


class Sender:
    def __init__(self, host, port, options, log):
        self.host = host
        self.port = port
        self.options = options
        self.log = log
        self.session = None
        self._cancelled = threading.Event()
        self._sent = 0

    def cancelled_by_receiver(self, session, peer):
        """Hears the `cancel` that a receiver sends to our own server."""
        if session != self.session:
            self.log.violation("session", f"cancel of {session}", address=peer.address)
        elif peer.address != self.host:
            self.log.violation("address", f"cancel of {session} from {peer.address}")
        else:
            if self.options.fingerprint is not None and peer.fingerprint != self.options.fingerprint.upper():
                self.log.violation("certificate-changed", f"cancel of {session}")
            self.log.event("cancelled", session=session, by="receiver")
            self._cancelled.set()

    def _link(self, uploading=False):
        options = self.options
        identity = options.upload_identity if uploading and options.upload_identity else options.identity
        source = options.upload_from if uploading else None
        return Link(self.host, self.port, self.log, identity, options.fingerprint, source)

    def device(self):
        own = self.options.identity.fingerprint if self.options.identity else "0" * 64
        claim = own.lower() if self.options.claim == "lower" else self.options.claim or own
        return {
            "alias": self.options.alias, "version": "2.2", "deviceModel": "Laboratory", "deviceType": "mobile", "fingerprint": claim,
            "port": self.options.port or 53317, "protocol": "https", "download": False,
        }

    def _call(self, link, method, path, kind, **more):
        status, document = link.request(method, f"/api/localsend/{path}", kind=kind, **more)
        self.log.event("answer", request=kind, status=status, message=(document or {}).get("message"))
        return status, document

    def info(self, version="v2"):
        link = self._link()
        _, document = self._call(link, "GET", f"{version}/info", "info")
        return self._device_answer(link, document)

    def register(self):
        link = self._link()
        _, document = self._call(link, "POST", "v2/register", "register", content=json.dumps(self.device()).encode())
        return self._device_answer(link, document)

    def _device_answer(self, link, document):
        try:
            shapes.check_device(document, shapes.INFO, "answer", self.log.violation, link.fingerprint)
        except shapes.Wrong as error:
            self.log.violation(error.rule, error.detail)
            document = None
        link.close()
        return document

    def send(self, items):
        """Offers and uploads; returns whether everything was delivered."""
        try:
            return self._send(items)
        except OtherCertificate:
            return False
        except Unreachable as error:
            self.log.event("unreachable", reason=str(error))
            return False

    def _send(self, items):
        options = self.options
        files = {item.id: item.fields(options) for item in items}
        first = files[items[0].id]
        first.update((key, value) for key, value in
                     (("fileName", options.name), ("size", options.size), ("sha256", options.sha256)) if value is not None)
        query = "" if options.pin is None else "?" + urllib.parse.urlencode({"pin": options.pin})
        content = json.dumps({"info": self.device(), "files": files}).encode()
        link = self._link()
        if options.cancel_waiting is not None:
            threading.Timer(options.cancel_waiting, self._cancel).start()
        try:
            status, document = self._call(
                link, "POST", f"v2/prepare-upload{query}", "prepare-upload", content=content, hang_up=options.hang_up)
            if status != 200:
                return status == 204
            shapes.check(document, shapes.SESSION, "answer", self.log.violation)
            return self._upload_accepted(document, files, items, link)
        except shapes.Wrong as error:
            self.log.violation(error.rule, error.detail)
            return False
        finally:
            link.close()

    def _upload_accepted(self, document, files, items, link):
        self.session, tokens = document["sessionId"], document["files"]
        for key in tokens.keys() - files.keys():
            self.log.violation("file", f"a token for {key}, which was not offered")
        if any(not isinstance(token, str) for token in tokens.values()) or len(set(tokens.values())) != len(tokens):
            self.log.violation("token", "not a text, or used twice")
        self.log.event("accepted", session=self.session, files=[item.name for item in items if item.id in tokens])
        if self.options.skip_uploads:
            return False
        return self._upload_all([(item, tokens[item.id]) for item in items if item.id in tokens], len(items), link)

    def _upload_all(self, accepted, offered, link):
        queue, results, lock = list(reversed(accepted)), [], threading.Lock()

        def work(link):
            while True:
                with lock:
                    if not queue or self._cancelled.is_set():
                        break
                    item, token = queue.pop()
                done = False
                try:
                    for _ in range(2 if self.options.repeat else 1):
                        link, done = self._upload(item, token, link)
                except Unreachable as error:
                    self.log.event("unreachable", request="upload", name=item.name, reason=str(error))
                    link = None
                except Stopped:
                    queue.clear()
                    link = None
                results.append(done)
            if link is not None:
                link.close()

        if self.options.upload_from or self.options.upload_identity:
            link = None
        threads = [threading.Thread(target=work, args=(link if number == 0 else None,)) for number in range(self.options.parallel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        delivered = len(results) == offered and all(results)
        if delivered:
            self.log.event("delivered", session=self.session, files=offered)
        return delivered

    def _upload(self, item, token, link):
        options = self.options
        for attempt in range(UPLOAD_ATTEMPTS):
            if link is None or not link.stream.is_open:
                link = self._link(uploading=True)
            query = {"sessionId": self.session, "fileId": item.id}
            if options.token != "none":
                query["token"] = token if options.token == "right" else str(uuid.uuid4())
            status, _ = self._call(
                link, "POST", "v2/upload?" + urllib.parse.urlencode(query), "upload", pieces=self._pieces(item, link),
                length=item.size if options.with_length else None)
            if status != 422:
                break
        if status == 200:
            self.log.event("uploaded", name=item.name, size=item.size)
        return link, status == 200

    def _pieces(self, item, link):
        options, sent, began = self.options, 0, time.monotonic()
        size = 64 * 1024 if options.rate is None else max(1, min(64 * 1024, options.rate // 20))
        for piece in item.pieces(size):
            yield piece
            sent += len(piece)
            if self._cancelled.is_set():
                link.close()
                raise Stopped
            if options.stall_after is not None and sent >= options.stall_after:
                options.stall_after = None
                self._cancelled.wait(options.stall)
            if options.die_after is not None and sent >= options.die_after:
                link.close()
                self.log.event("died", name=item.name, sent=sent)
                raise Stopped
            if options.cancel_after is not None and sent >= options.cancel_after:
                # 1.18 closes the connection of the upload first, too.
                link.close()
                self._cancel()
                raise Stopped
            if options.rate is not None:
                time.sleep(max(0, sent / options.rate - (time.monotonic() - began)))

    def _cancel(self):
        session = self.session
        self.log.event("cancelled", session=session, by="sender")
        try:
            link = self._link(uploading=True)
            self._call(link, "POST", "v2/cancel" + (f"?sessionId={session}" if session else ""), "cancel")
            link.close()
        except Unreachable as error:
            self.log.event("unreachable", request="cancel", reason=str(error))
