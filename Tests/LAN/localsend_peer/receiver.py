"""A receiver that answers as LocalSend 1.18 does, and reports every fault of the sender.

One thread serves one connection. There is one slot for an offer, as in 1.18: a second offer is answered 409.
"""

import json
import socket
import ssl
import threading
import time
import uuid

import http11
import identity as identities
import shapes
from offers import File, Offer, Peer, Refusal
from uploads import Uploads


PIN_ATTEMPTS = 3
HEAD_TIMEOUT = 30


class Receiver(Uploads):
    """The server. `on_cancel(session, address)` is called for sessions that are not ours: a receiver cancels what we send."""

    def __init__(self, identity, options, log, on_cancel=None, other=None):
        self.identity = identity
        self.options = options
        self.log = log
        self.on_cancel = on_cancel
        self.other = other
        self._context = identities.server_context(identity, options.asking)
        self._lock = threading.Lock()
        self._offer = None
        self._pins = {}
        self._bad_checksums = options.bad_checksums
        family = socket.AF_INET6 if ":" in options.bind else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            self._listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self._listener.bind((options.bind, options.port))
        self._listener.listen(128)
        self.port = self._listener.getsockname()[1]
        self.log.event("listening", port=self.port, fingerprint=identity.fingerprint, id=identity.id, alias=options.alias)
        threading.Thread(target=self._accept, daemon=True).start()
        if other is not None:
            change = threading.Timer(options.other_after, self._change_certificate)
            change.daemon = True
            change.start()

    def _change_certificate(self):
        self._context = identities.server_context(self.other, self.options.asking)
        self.log.event("other-certificate", fingerprint=self.other.fingerprint)

    def close(self):
        # Wakes the thread in accept, which close alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def info(self):
        return {
            "alias": self.options.alias, "version": "2.2", "deviceModel": "Laboratory", "deviceType": "headless",
            "fingerprint": self.identity.fingerprint, "download": False,
        }

    def device(self):
        return {**self.info(), "port": self.port, "protocol": "https"}

    # ------------------------------------------------------------------------------------------------- connections

    def _accept(self):
        while True:
            try:
                connection, address = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, address), daemon=True).start()

    def _serve(self, connection, address):
        host = address[0].removeprefix("::ffff:")
        if len(address) == 4 and address[3]:
            host = f"{host.partition('%')[0]}%{address[3]}"
        connection.settimeout(HEAD_TIMEOUT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with self._context.wrap_socket(connection, server_side=True) as tls:
                peer = self._greet(tls, host)
                if peer is not None:
                    self._requests(http11.Stream(tls), peer)
        except ssl.SSLError as error:
            missing = "PEER_DID_NOT_RETURN_A_CERTIFICATE" in (error.reason or "")
            if missing:
                self.log.violation("certificate-missing", address=host)
            elif error.reason in ("UNSUPPORTED_PROTOCOL", "HTTP_REQUEST", "WRONG_VERSION_NUMBER", "NO_SHARED_CIPHER"):
                self.log.violation("tls", error.reason, address=host)
            else:
                # A sender that pins another certificate ends the handshake with an alert.
                self.log.event("handshake-failed", reason=error.reason or str(error), address=host)
        except OSError as error:
            self.log.event("connection-lost", reason=str(error), address=host)
        finally:
            connection.close()

    def _greet(self, tls, host):
        der = tls.getpeercert(binary_form=True)
        faults = identities.faults_of(der) if der else []
        for rule in faults:
            self.log.violation(rule, address=host)
        # 1.18 ends the handshake itself; the sender cannot tell the difference before its first answer.
        return None if faults else Peer(host, identities.fingerprint_of(der) if der else None)

    def _requests(self, stream, peer):
        while True:
            try:
                request = http11.Request(stream)
            except http11.Closed:
                return
            except socket.timeout:
                return
            except http11.Malformed as error:
                self.log.violation(error.rule, error.detail, address=peer.address)
                stream.send(http11.answer_bytes(400, b"", True))
                stream.linger()
                return
            try:
                status, content, closing = self._answer(stream, request, peer)
            except http11.Closed:
                return
            except http11.Malformed as error:
                self.log.violation(error.rule, error.detail, address=peer.address)
                status, content, closing = 400, b"", True
            closing = closing or not request.keeps
            try:
                stream.send(http11.answer_bytes(status, content, closing))
            except http11.Closed:
                return
            if closing:
                stream.linger()
                return

    def _answer(self, stream, request, peer):
        length = request.framing()
        if request.headers.get("expect", "").lower() == "100-continue":
            stream.send(http11.answer_bytes(100, b"", False))
        content = http11.body(stream, length)
        route = self.ROUTES.get((request.method, request.path))
        try:
            if route is None:
                known = any(path == request.path for _, path in self.ROUTES)
                self.log.violation("method" if known else "path", f"{request.method} {request.path}", address=peer.address)
                raise Refusal(404, None)
            query = self._query(request)
            result = route(self, query, content, length, peer, stream)
            status, document = result if result is not None else (200, None)
            closing = False
        except shapes.Wrong as error:
            self.log.violation(error.rule, error.detail, address=peer.address)
            status, document, closing = 400, {"message": "Invalid JSON body"}, False
        except Refusal as refusal:
            document = {"message": refusal.message} if refusal.message else None
            status, closing = refusal.status, refusal.closing
        if not closing:
            # The rest of a body that was refused unread, so that the connection can go on.
            size = 0
            for piece in content:
                size += len(piece)
                if size > self.options.body_limit:
                    closing = True
                    break
        return status, b"" if document is None else json.dumps(document).encode(), closing

    QUERIES = {
        "/api/localsend/v2/prepare-upload": {"pin"}, "/api/localsend/v2/cancel": {"sessionId"},
        "/api/localsend/v2/upload": {"sessionId", "fileId", "token"},
    }

    def _query(self, request):
        names = [name for name, _ in request.query]
        for name in set(names):
            if name not in self.QUERIES.get(request.path, ()):
                self.log.violation("query-unknown", name)
            if names.count(name) > 1:
                self.log.violation("query-repeated", name)
        return dict(request.query)

    def _document(self, content):
        data = bytearray()
        for piece in content:
            data += piece
            if len(data) > self.options.body_limit:
                self.log.violation("body-limit", f"more than {self.options.body_limit} bytes")
                raise Refusal(413, "Body too large", closing=True)
        return shapes.parse(bytes(data))

    # -------------------------------------------------------------------------------------------------------- routes

    def _info(self, query, content, length, peer, stream):
        return 200, self.info()

    def _register(self, query, content, length, peer, stream):
        document = self._document(content)
        before = len(self.log.violations)
        shapes.check_device(document, shapes.DEVICE, "body", self.log.violation, peer.fingerprint)
        proven = peer.fingerprint is None or document["fingerprint"].upper() == peer.fingerprint
        self.log.event(
            "registered" if proven else "ignored", alias=document["alias"], fingerprint=document["fingerprint"],
            certificate=peer.fingerprint, address=peer.address, port=document["port"], clean=before == len(self.log.violations))
        return 200, self.info()

    def _check_pin(self, query, peer):
        if self.options.pin is None:
            return
        with self._lock:
            wrong = self._pins.get(peer.address, 0)
            if wrong >= PIN_ATTEMPTS:
                raise Refusal(429, "Too many requests")
            pin = query.get("pin")
            if pin == self.options.pin:
                self._pins.pop(peer.address, None)
                return
            if pin is not None:
                self._pins[peer.address] = wrong + 1
        raise Refusal(401, "PIN required" if pin is None else "Invalid PIN")

    def _prepare(self, query, content, length, peer, stream):
        try:
            status, document = self._decide(query, content, peer, stream)
        except Refusal as refusal:
            self.log.event("answered", status=refusal.status, message=refusal.message)
            raise
        self.log.event("answered", status=status, session=document and document["sessionId"])
        return status, document

    def _decide(self, query, content, peer, stream):
        options = self.options
        self._check_pin(query, peer)
        document = self._document(content)
        shapes.check_offer(document, self.log.violation, peer.fingerprint)
        files = document["files"]
        if not files:
            self.log.violation("files-none")
            raise Refusal(400, "No files provided")
        if len(files) > options.file_limit:
            self.log.violation("file-limit", f"{len(files)} files")
            raise Refusal(413, "Too many files")
        offer = Offer(peer, document["info"])
        with self._lock:
            if self._offer is not None or options.answer == "busy":
                raise Refusal(409, "Blocked by another session")
            self._offer = offer
        try:
            text = shapes.is_text(next(iter(files.values()))) if len(files) == 1 else False
            self.log.event(
                "offered", session=offer.id, alias=offer.info["alias"], fingerprint=peer.fingerprint, address=peer.address,
                files=[{name: file[name] for name in ("fileName", "size", "fileType")} for file in files.values()],
                text=next(iter(files.values()))["preview"] if text else None)
            self._await_person(offer, stream)
            if options.prepare_status is not None:
                raise Refusal(options.prepare_status, f"Status {options.prepare_status}")
            if options.answer == "reject":
                raise Refusal(403, "Rejected")
            accepted = {key: file for key, file in files.items() if not options.only or file["fileName"] in options.only}
            if options.answer == "none" or (text and options.text == "204") or not accepted:
                return 204, None
            if options.space is not None and sum(file["size"] for file in accepted.values()) > options.space:
                raise Refusal(507, "Not enough space")
            with self._lock:
                offer.files = {key: File(file, str(uuid.uuid4())) for key, file in accepted.items()}
            return 200, {"sessionId": offer.id, "files": {key: file.token for key, file in offer.files.items()}}
        finally:
            if offer.files is None:
                self._end(offer)

    def _await_person(self, offer, stream):
        deadline = time.monotonic() + self.options.wait
        if self.options.answer == "hang-up":
            raise http11.Closed("our part")
        while (left := deadline - time.monotonic()) > 0 and not offer.cancelled:
            if stream.is_readable(left, offer.wake):
                if stream.has_ended():
                    self.log.event("withdrawn", session=offer.id)
                    raise http11.Closed("withdrawn")
                if stream.has_bytes():
                    self.log.violation("http-pipelining", "bytes behind a request that has no answer")
                    raise Refusal(400, "Unexpected bytes", closing=True)
        if offer.cancelled:
            raise Refusal(403, "Cancelled by sender")

    def _end(self, offer):
        with self._lock:
            if self._offer is offer:
                self._offer = None

    def _cancel(self, query, content, length, peer, stream):
        session = query.get("sessionId")
        with self._lock:
            offer = self._offer
            ours = offer is not None and (session == offer.id or (session is None and offer.files is None))
            allowed = ours and offer.address == peer.address
            if allowed and offer.files is None:
                offer.cancel()
            elif allowed:
                self._offer = None
        if ours and not allowed:
            self.log.violation("address", f"cancel of {session} from {peer.address}")
        elif ours and offer.fingerprint != peer.fingerprint:
            self.log.violation("certificate-changed", f"cancel of {session}")
        if allowed:
            self.log.event("cancelled", session=offer.id, by="sender")
        elif session is not None and self.on_cancel is not None:
            self.on_cancel(session, peer)
        else:
            self.log.event("cancelled-nothing", session=session, address=peer.address)
        return 200, None

    ROUTES = {
        ("GET", "/api/localsend/v1/info"): _info, ("GET", "/api/localsend/v2/info"): _info,
        ("POST", "/api/localsend/v2/register"): _register, ("POST", "/api/localsend/v2/prepare-upload"): _prepare,
        ("POST", "/api/localsend/v2/upload"): Uploads._upload, ("POST", "/api/localsend/v2/cancel"): _cancel,
    }
