"""A LocalSend device for the laboratory. Prints one JSON line for each event.

Exit status: 0 as asked, 1 the other side broke the protocol, 2 usage, 3 refused or not delivered.
"""

import argparse
import dataclasses
import os
import signal
import sys
import tempfile
import threading

# The folder is a source folder, where no files may appear.
sys.dont_write_bytecode = True

import discovery
import identity as identities
import link
import offers
import receiver
import sender
from log import Log


def parser():
    main = argparse.ArgumentParser(prog="localsend_peer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    main.add_argument("--identity", metavar="DIRECTORY", help="keep the certificate there")
    main.add_argument("--alias", help="the name of this device")
    main.add_argument("--interface", metavar="NAME", help="the only interface for multicast")
    main.add_argument("--tolerate", action="append", default=[], metavar="RULE", help="do not fail for violations of this rule")
    main.add_argument("--seconds", type=float, help="stop after this time (serve, discover)")
    commands = main.add_subparsers(dest="command", required=True)

    serve = commands.add_parser("serve", help="receive")
    serve.add_argument("directory", help="for received files")
    add = serve.add_argument
    add("--bind", default="::")
    add("--port", type=int, default=0)
    add("--announce", action="store_true", help="announce this device, and answer announcements")
    add("--asking", choices=["required", "optional", "none"], default="required", help="for the sender's certificate")
    add("--hide", dest="show", action="store_false", help="show no certificate in our own requests")
    add("--answer", choices=["accept", "reject", "busy", "none", "hang-up"], default="accept")
    add("--only", nargs="+", default=(), metavar="NAME", help="accept these files alone")
    add("--wait", type=float, default=0, metavar="SECONDS", help="before a person answers")
    add("--text", choices=["204", "200"], default="204")
    add("--pin")
    add("--prepare-status", type=int, metavar="STATUS")
    add("--upload-status", type=int, metavar="STATUS")
    add("--bad-checksums", type=int, default=0, metavar="COUNT", help="answer this many uploads with 422")
    add("--cut-after", type=int, metavar="BYTES", help="close the connection within a file")
    add("--cancel-after", type=int, metavar="BYTES", help="cancel within a file")
    add("--rate", type=int, metavar="BYTES", help="read this many a second")
    add("--other-after", type=float, metavar="SECONDS", help="then show another certificate")
    add("--space", type=int, metavar="BYTES", help="507 for more")

    send = commands.add_parser("send", help="send files, directories or a text")
    asking = [send, commands.add_parser("register", help="register"), commands.add_parser("info", help="read the information")]
    for each in asking:
        each.add_argument("host")
        each.add_argument("port", type=int)
        each.add_argument("--fingerprint", help="that the receiver must have")
        each.add_argument("--hide", action="store_true", help="show no certificate")
        each.add_argument("--claim", metavar="FINGERPRINT", help="in the body; lower: our own in lower case")
    asking[2].add_argument("--version", choices=["v1", "v2"], default="v2")
    add = send.add_argument
    add("paths", nargs="*")
    add("--text")
    add("--pin")
    add("--checksums", action="store_true")
    add("--parallel", type=int, default=1, metavar="COUNT")
    add("--deaf", action="store_true", help="have no server for the receiver's cancel")
    add("--cancel-waiting", type=float, metavar="SECONDS", help="cancel without a session")
    add("--hang-up", type=float, metavar="SECONDS", help="close the connection if there is no answer")
    add("--cancel-after", type=int, metavar="BYTES", help="cancel within a file")
    add("--die-after", type=int, metavar="BYTES", help="close the connection within a file")
    add("--stall-after", type=int, metavar="BYTES", help="pause within a file")
    add("--stall", type=float, default=0, metavar="SECONDS")
    add("--rate", type=int, metavar="BYTES", help="send this many a second")
    add("--with-length", action="store_true", help="Content-Length instead of chunks")
    add("--many", type=int, default=0, metavar="COUNT", help="offer this many small files besides")
    add("--name", help="the first file's name in the offer")
    add("--size", type=int, help="the first file's size in the offer")
    add("--sha256", help="the first file's checksum in the offer")
    add("--repeat", action="store_true", help="upload every file twice")
    add("--token", choices=["right", "wrong", "none"], default="right")
    add("--upload-from", metavar="ADDRESS", help="upload from this address")
    add("--other-certificate", action="store_true", help="upload with another certificate")
    add("--skip-uploads", action="store_true")

    listen = commands.add_parser("discover", help="hear announcements, and register with their devices")
    listen.add_argument("--silent", action="store_true", help="do not answer")
    forge = commands.add_parser("forge", help="send forged announcements")
    forge.add_argument("count", type=int)
    forge.add_argument("--claim", metavar="FINGERPRINT", help="in all of them")
    forge.add_argument("--port", type=int, default=discovery.PORT, help="the announced port")
    forge.add_argument("--to", metavar="ADDRESS", help="instead of the group")
    forge.add_argument("--sources", nargs=2, metavar=("FIRST", "COUNT"), help="addresses on the link that send them")
    return main


def main():
    reading = parser()
    given, more = reading.parse_known_args()
    # argparse takes paths only before the first option.
    if more and (given.command != "send" or any(word.startswith("-") for word in more)):
        reading.error(f"unknown arguments: {' '.join(more)}")
    if more:
        given.paths += more
    log = Log(sys.stdout, given.tolerate)
    # A fault of this program must not pass as a success.
    threading.excepthook = lambda fault: (sys.__excepthook__(*fault[:3]), log.violation("internal", repr(fault.exc_value)))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with tempfile.TemporaryDirectory() as place:
        own = identities.Identity(given.identity or os.path.join(place, "own"))
        try:
            done = COMMANDS[given.command](given, own, log, stop, place)
        except link.Unreachable as error:
            log.event("unreachable", reason=str(error))
            done = False
    return 1 if log.violations else 0 if done else 3


def serve(given, own, log, stop, place):
    names = {field.name for field in dataclasses.fields(offers.Options)}
    options = offers.Options(**{name: value for name, value in vars(given).items() if name in names and value is not None})
    os.makedirs(options.directory, exist_ok=True)
    other = identities.Identity(os.path.join(place, "other")) if options.other_after is not None else None
    server = receiver.Receiver(own, options, log, other=other)
    if given.announce:
        multicast = discovery.Discovery(server.device, own if options.show else None, log, given.interface)
        threading.Thread(target=multicast.announce, daemon=True).start()
    stop.wait(given.seconds)
    return True


def items_of(given):
    items = [item for path in given.paths for item in sender.Item.below(path)]
    items += [sender.Item(f"many/{number}", content=b"x") for number in range(given.many)]
    return items + ([sender.Item.text(given.text)] if given.text is not None else [])


def asking(given, own, log, **more):
    options = sender.Options(
        identity=None if given.hide else own, fingerprint=given.fingerprint, claim=given.claim, **more)
    if given.alias:
        options.alias = given.alias
    return sender.Sender(given.host, given.port, options, log)


def send(given, own, log, stop, place):
    names = {field.name for field in dataclasses.fields(sender.Options)} - {"identity", "fingerprint", "claim", "alias"}
    making = asking(given, own, log, **{name: value for name, value in vars(given).items() if name in names and value is not None})
    if given.other_certificate:
        making.options.upload_identity = identities.Identity(os.path.join(place, "other"))
    if not given.deaf:
        options = offers.Options(alias=making.options.alias, answer="reject", asking="optional")
        making.options.port = receiver.Receiver(own, options, log, on_cancel=making.cancelled_by_receiver).port
    return making.send(items_of(given))


def register(given, own, log, stop, place):
    answer = asking(given, own, log).register()
    log.event("device", **(answer or {}))
    return answer is not None


def info(given, own, log, stop, place):
    answer = asking(given, own, log).info(given.version)
    log.event("device", **(answer or {}))
    return answer is not None


def discover(given, own, log, stop, place):
    device = {**sender.Sender(None, None, sender.Options(identity=own), log).device(), "alias": given.alias or "Strict Listener"}
    discovery.Discovery(lambda: device, own, log, given.interface, answers=not given.silent)
    log.event("listening", fingerprint=own.fingerprint, id=own.id)
    stop.wait(given.seconds)
    return True


def forge(given, own, log, stop, place):
    device = {**sender.Sender(None, None, sender.Options(identity=own), log).device(), "port": given.port}
    sources = (given.sources[0], int(given.sources[1])) if given.sources else None
    discovery.forge(
        given.count, log, device, given.interface, sources, to=given.to, claim=given.claim, alias=given.alias)
    return True


COMMANDS = {"serve": serve, "send": send, "register": register, "info": info, "discover": discover, "forge": forge}

if __name__ == "__main__":
    sys.exit(main())
