"""A receiver's options, and the offer that it considers."""

import dataclasses
import os
import uuid


@dataclasses.dataclass
class Options:
    """The choices of this device's user, and its faults. Times are seconds."""

    alias: str = "Strict Peer"
    bind: str = "::"
    port: int = 0
    directory: str = "."
    asking: str = "required"         # for the sender's certificate: required, optional, none
    show: bool = True                # our certificate, in requests to the sender
    answer: str = "accept"           # accept, reject, busy, none (204), hang-up
    only: tuple = ()                 # names to accept; all if empty
    wait: float = 0                  # before a person answers
    text: str = "204"                # answer to a text: 204, or 200 to have it uploaded
    pin: str = None
    prepare_status: int = None       # answer every offer with it
    upload_status: int = None        # answer every upload with it, after its body
    bad_checksums: int = 0           # answer this many uploads with 422, whatever their checksum
    cut_after: int = None            # bytes of a file, after which the connection is closed
    cancel_after: int = None         # bytes of a file, after which the session is cancelled
    rate: int = None                 # bytes a second
    other_after: float = None        # when another certificate is shown
    body_limit: int = 4 << 20
    file_limit: int = 5000
    space: int = None                # bytes


class Refusal(Exception):
    """An answer other than success."""

    def __init__(self, status, message, closing=False):
        super().__init__(message)
        self.status = status
        self.message = message
        self.closing = closing


@dataclasses.dataclass
class File:
    fields: dict
    token: str
    state: str = "pending"           # pending, moving, done, failed
    attempts: int = 0


class Offer:
    """One offer, from its arrival to the end of its files."""

    def __init__(self, peer, info):
        self.id = str(uuid.uuid4())
        self.address = peer.address
        self.fingerprint = peer.fingerprint
        self.info = info
        self.files = None                       # None while a person decides
        self.cancelled = False
        self._reader, self._writer = os.pipe()  # ends the wait for the person
        self.wake = self._reader

    def cancel(self):
        self.cancelled = True
        os.write(self._writer, b"c")

    def __del__(self):
        os.close(self._reader)
        os.close(self._writer)


@dataclasses.dataclass
class Peer:
    """The other end of a connection."""

    address: str
    fingerprint: str                 # None without a certificate
