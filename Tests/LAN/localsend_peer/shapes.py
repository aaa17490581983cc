"""The JSON documents of protocol 2.2, and what a strict peer finds wrong with one.

`packages/core` of LocalSend 1.18 refuses a document with a required field that is missing or of a wrong type, and a field
that is there twice. It ignores unknown fields and odd values. Both are violations here, but only the first is fatal.
"""

import json
import re

# Kinds: text, boolean, port, size, protocol, object. An optional field may also be null.
DEVICE = {
    "alias": ("text", True), "version": ("text", True), "deviceModel": ("text", False), "deviceType": ("text", False),
    "fingerprint": ("text", True), "port": ("port", True), "protocol": ("protocol", True), "download": ("boolean", False),
}
ANNOUNCEMENT = {**DEVICE, "announce": ("boolean", False)}
INFO = {name: kind for name, kind in DEVICE.items() if name not in ("port", "protocol")}
OFFER = {"info": ("object", True), "files": ("object", True)}
FILE = {
    "id": ("text", True), "fileName": ("text", True), "size": ("size", True), "fileType": ("text", True),
    "sha256": ("text", False), "preview": ("text", False), "metadata": ("object", False),
}
METADATA = {"modified": ("text", False), "accessed": ("text", False)}
SESSION = {"sessionId": ("text", True), "files": ("object", True)}
FAILURE = {"message": ("text", True)}

DEVICE_TYPES = {"mobile", "desktop", "web", "headless", "server"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")


class Wrong(Exception):
    """A document that 1.18 answers with 400."""

    def __init__(self, rule, detail):
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail


def parse(data):
    def once(pairs):
        names = [name for name, _ in pairs]
        if len(names) != len(set(names)):
            raise Wrong("json-repeated", "a field twice")
        return dict(pairs)

    def constant(text):
        raise Wrong("json-syntax", text)

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_constant=constant)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Wrong("json-syntax", str(error)) from error


def _fits(value, kind):
    whole = isinstance(value, int) and not isinstance(value, bool)
    return {
        "text": isinstance(value, str), "boolean": isinstance(value, bool), "object": isinstance(value, dict),
        "port": whole and 0 <= value < 1 << 16, "size": whole and 0 <= value < 1 << 64,
        "protocol": value in ("http", "https"),
    }[kind]


def check(document, shape, where, report):
    """Raises `Wrong` for what 1.18 refuses, and reports unknown fields."""
    if not isinstance(document, dict):
        raise Wrong("json-type", f"{where} is no object")
    for name, (kind, required) in shape.items():
        value = document.get(name)
        if value is None:
            if required:
                raise Wrong("json-missing", f"{where}.{name}")
        elif not _fits(value, kind):
            raise Wrong("json-type", f"{where}.{name} is no {kind}")
    for name in document.keys() - shape.keys():
        report("json-unknown", f"{where}.{name}")


def check_device(document, shape, where, report, fingerprint=None):
    """Checks a device; `fingerprint` is that of its certificate, if it showed one."""
    check(document, shape, where, report)
    claimed = document["fingerprint"]
    if not re.fullmatch("[0-9A-Fa-f]{64}", claimed):
        report("fingerprint-format", claimed)
    elif claimed != claimed.upper():
        report("fingerprint-case", claimed)
    if fingerprint is not None and claimed.upper() != fingerprint:
        report("fingerprint-proof", f"{where} claims {claimed}, the certificate is {fingerprint}")
    if not re.fullmatch(r"2\.\d+", document["version"]):
        report("json-value", f"{where}.version {document['version']}")
    if not document["alias"]:
        report("json-value", f"{where}.alias is empty")
    if document.get("deviceType") is not None and document["deviceType"] not in DEVICE_TYPES:
        report("json-value", f"{where}.deviceType {document['deviceType']}")
    if document.get("port") == 0:
        report("json-value", f"{where}.port 0")


def is_text(file):
    return file.get("preview") is not None and re.match(r"text(/|\Z)", file["fileType"]) is not None


def unsafe(name):
    """Whether a name would leave the directory that it is put in, or fit into none."""
    parts = name.split("/")
    return name.startswith("/") or any(
        part in ("", ".", "..") or len(part.encode("utf-8", "replace")) > 255 or re.search("[\0-\x1f\x7f]", part) for part in parts)


def check_offer(document, report, fingerprint=None):
    """Checks the body of `prepare-upload`."""
    check(document, OFFER, "body", report)
    check_device(document["info"], DEVICE, "info", report, fingerprint)
    for key, file in document["files"].items():
        where = f"files.{key}"
        check(file, FILE, where, report)
        if file["id"] != key:
            report("file-id", f"{where}.id is {file['id']}")
        if unsafe(file["fileName"]):
            report("file-name", file["fileName"])
        if "/" not in file["fileType"]:
            report("file-type", f"{where}.fileType {file['fileType']}")
        if file.get("sha256") is not None and not re.fullmatch("[0-9a-f]{64}", file["sha256"].lower()):
            report("file-sha256", f"{where}.sha256 {file['sha256']}")
        if len(document["files"]) == 1 and is_text(file) and file["size"] != len(file["preview"].encode()):
            report("file-preview", f"{where}: {file['size']} bytes declared")
        if file.get("metadata") is not None:
            check(file["metadata"], METADATA, f"{where}.metadata", report)
            for name, value in file["metadata"].items():
                if isinstance(value, str) and not TIME.fullmatch(value):
                    report("file-time", f"{where}.metadata.{name} {value}")
