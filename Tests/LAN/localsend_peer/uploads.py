"""The files of an accepted offer."""

import hashlib
import os
import re
import time

import http11
import shapes
from link import Link, Unreachable
from offers import Refusal

UPLOAD_ATTEMPTS = 3


class Uploads:
    """The part of a receiver that takes files; the receiver has the offer, the options and the log."""

    def _upload(self, query, content, length, peer, stream):
        if missing := [name for name in ("sessionId", "fileId", "token") if name not in query]:
            self.log.violation("query-missing", ", ".join(missing))
            raise Refusal(400, "Missing parameters")
        with self._lock:
            offer, file = self._offer, None
            rule = "session"
            if offer is not None and offer.files is not None and offer.id == query["sessionId"]:
                file = offer.files.get(query["fileId"])
                rule = (
                    "address" if offer.address != peer.address else "certificate-changed" if offer.fingerprint != peer.fingerprint
                    else "file" if file is None else "token" if file.token != query["token"]
                    else "upload-again" if file.state != "pending" else None)
            if rule is None:
                file.state = "moving"
                file.attempts += 1
        if rule is not None:
            # A session that a cancel ended is unknown to us before the sender knows; that is no fault of the sender.
            if rule != "session" or query["sessionId"] not in self._past():
                self.log.violation(rule, f"session {query['sessionId']}, file {query['fileId']}", address=peer.address)
            raise Refusal(403, "Invalid token or IP address", closing=True)
        try:
            return self._store(offer, file, content, length, peer)
        finally:
            with self._lock:
                if file.state == "moving":
                    file.state = "failed"
                done = all(each.state in ("done", "failed") for each in offer.files.values())
            if done:
                self._end(offer)
                self.log.event("finished", session=offer.id)

    def _past(self):
        return {line["session"] for line in self.log.events if line["event"] == "cancelled" and "session" in line}

    def _store(self, offer, file, content, length, peer):
        options, name, size = self.options, file.fields["fileName"], file.fields["size"]
        if length is not None and length != size:
            self.log.violation("upload-size", f"{name}: Content-Length {length}, {size} declared")
        path = self._place(name)
        digest, received = hashlib.sha256(), 0
        began, cancelled = time.monotonic(), False
        try:
            with open(path, "xb") as target:
                for piece in content:
                    received += len(piece)
                    if received > size:
                        self.log.violation("upload-size", f"{name}: more than {size} bytes")
                        raise Refusal(500, "Status code: 500 Internal Server Error", closing=True)
                    digest.update(piece)
                    target.write(piece)
                    if options.cut_after is not None and received >= options.cut_after:
                        self.log.event("cut", session=offer.id, name=name, received=received)
                        raise http11.Closed("our part")
                    if options.cancel_after is not None and received >= options.cancel_after and not cancelled:
                        cancelled = True
                        self._cancel_sender(offer)
                    if options.rate is not None:
                        time.sleep(max(0, received / options.rate - (time.monotonic() - began)))
        except (http11.Closed, Refusal) as error:
            os.unlink(path)
            if isinstance(error, http11.Closed):
                self.log.event("aborted", session=offer.id, name=name, received=received)
            raise
        if received != size:
            os.unlink(path)
            self.log.violation("upload-size", f"{name}: {received} bytes, {size} declared")
            raise Refusal(500, "Status code: 500 Internal Server Error")
        return self._judge(offer, file, path, digest.hexdigest())

    def _judge(self, offer, file, path, digest):
        declared = file.fields.get("sha256")
        wrong = declared is not None and declared.lower() != digest
        if wrong or self._bad_checksums > 0:
            os.unlink(path)
            self._bad_checksums -= 0 if wrong else 1
            if wrong:
                self.log.violation("upload-checksum", f"{file.fields['fileName']}: {digest}, {declared} declared")
            with self._lock:
                file.state = "pending" if file.attempts < UPLOAD_ATTEMPTS else "failed"
            raise Refusal(422, "Checksum mismatch")
        if self.options.upload_status is not None:
            os.unlink(path)
            raise Refusal(self.options.upload_status, f"Status {self.options.upload_status}")
        with self._lock:
            file.state = "done"
        self.log.event(
            "uploaded", session=offer.id, name=file.fields["fileName"], size=file.fields["size"], sha256=digest, path=path,
            attempts=file.attempts)
        return 200, None

    def _place(self, name):
        """A new path below the directory; unsafe names, already reported, become a single safe one."""
        name = re.sub(r"[/\0]|^\.+", "_", name)[:200] if shapes.unsafe(name) else name
        path, number = os.path.join(self.options.directory, name), 1
        os.makedirs(os.path.dirname(path), exist_ok=True)
        while os.path.exists(path):
            number += 1
            path = os.path.join(self.options.directory, f"{name} ({number})")
        return path

    def _cancel_sender(self, offer):
        """Cancels as a receiver does: at the sender's own server, by our id of the session."""
        self.log.event("cancelled", session=offer.id, by="receiver")
        self._end(offer)
        try:
            link = Link(offer.address, offer.info["port"], self.log, self.identity if self.options.show else None, offer.fingerprint)
            link.request("POST", f"/api/localsend/v2/cancel?sessionId={offer.id}", kind="cancel")
            link.close()
        except Unreachable as error:
            self.log.event("unreachable", request="cancel", reason=str(error))
