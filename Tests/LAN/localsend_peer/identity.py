"""Certificates and TLS: a device is known by the SHA-256 of its certificate."""

import base64
import ctypes
import functools
import hashlib
import os
import re
import ssl
import subprocess


class Identity:
    """A self-signed certificate with its key, made at the first use of its directory."""

    def __init__(self, directory):
        self.certificate = os.path.join(directory, "certificate.pem")
        self.key = os.path.join(directory, "key.pem")
        if not os.path.exists(self.certificate):
            os.makedirs(directory, exist_ok=True)
            # Certificates of LocalSend never expire in practice, and name nobody.
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-sha256", "-days", "36500",
                 "-subj", "/CN=LocalSend User", "-keyout", self.key, "-out", self.certificate],
                check=True, capture_output=True)
        with open(self.certificate, encoding="ascii") as file:
            self.der = ssl.PEM_cert_to_DER_cert(file.read())
        self.fingerprint = fingerprint_of(self.der)

    @property
    def id(self):
        """The id of this device in Earshot."""
        return "LS-" + base64.b32encode(bytes.fromhex(self.fingerprint)).decode().rstrip("=")


def fingerprint_of(der):
    return hashlib.sha256(der).hexdigest().upper()


@functools.lru_cache(maxsize=256)
def faults_of(der):
    """Returns the rules that a device's certificate breaks. LocalSend 1.18 checks the dates and the signature by the
    certificate's own key; its TLS library demands version 3, and RSA keys of at least 2048 bits."""
    pem = ssl.DER_cert_to_PEM_cert(der)
    run = lambda *arguments: subprocess.run(["openssl", *arguments], input=pem, capture_output=True, text=True)
    text = run("x509", "-noout", "-text").stdout
    faults = []
    if "Version: 3 " not in text:
        faults.append("certificate-version")
    bits = re.search(r"Public-Key: \((\d+) bit", text)
    if "rsaEncryption" in text and (bits is None or int(bits[1]) < 2048):
        faults.append("certificate-key")
    # Read as the authority and as the certificate, which is therefore its own issuer or nobody's.
    with open_memory(pem) as path:
        said = run("verify", "-check_ss_sig", "-CAfile", path).stderr
    if "expired" in said or "not yet valid" in said:
        faults.append("certificate-dates")
    elif "error" in said:
        faults.append("certificate-signature")
    return faults


class open_memory:
    """A path to a text that only this process and its children can read."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.descriptor = os.memfd_create("certificate")
        os.write(self.descriptor, self.text.encode())
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def __exit__(self, *_):
        os.close(self.descriptor)


def server_context(identity, asking):
    """TLS of a receiver. `asking` is `required`, `optional` or `none`, for the certificate of the sender."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(identity.certificate, identity.key)
    if asking != "none":
        context.verify_mode = ssl.CERT_REQUIRED if asking == "required" else ssl.CERT_OPTIONAL
        _accept_every_certificate(context)
    return context


def client_context(identity):
    """TLS of a sender, without a certificate if `identity` is None. The caller compares the fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    if identity is not None:
        context.load_cert_chain(identity.certificate, identity.key)
    return context


# Kept for the life of the process, since OpenSSL calls it.
_ACCEPT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda store, argument: 1)


def _accept_every_certificate(context):
    """Lets a sender show a certificate that no authority signed. Python's own interface only takes certificates that it
    can verify, so the verification is replaced in OpenSSL; `faults_of` is ours."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "/libssl.so" in line)
    library = ctypes.CDLL(path)
    library.SSL_CTX_get_verify_mode.argtypes = [ctypes.c_void_p]
    library.SSL_CTX_set_cert_verify_callback.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.SSL_CTX_set_cert_verify_callback.restype = None
    # CPython's object begins with its count and type, and the SSL_CTX follows.
    pointer = ctypes.c_void_p.from_address(id(context) + 2 * ctypes.sizeof(ctypes.c_void_p)).value
    before = library.SSL_CTX_get_verify_mode(pointer)
    assert bool(before & 2) == (context.verify_mode == ssl.CERT_REQUIRED), "this Python keeps its SSL_CTX elsewhere"
    library.SSL_CTX_set_cert_verify_callback(pointer, ctypes.cast(_ACCEPT, ctypes.c_void_p), None)
