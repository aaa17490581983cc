"""What schemathesis is told about this API: names that mean a peer, times that a test can wait for, and a count of what it did.

Only calls that are meant to be right are touched; those that are meant to be wrong go out as they were made.
"""

import http.client
import json
import os
import socket
import time
import zlib

import schemathesis
from schemathesis import GenerationMode

PLACE = os.environ["EARSHOT_API_PLACE"]
COUNTS = os.path.join(PLACE, "counts.json")
# A trusted peer that is never there: whatever is for it waits.
ABSENT = "A4DQOBYHA4DQOBYHA4DQOBYHA4DQOBYHA4DQOBYHA4DQOBYHA4DQ"
counts = {}
calls = 0


class Daemon(http.client.HTTPConnection):
    """One of the daemons, spoken to beside the test."""

    def __init__(self, name):
        super().__init__("localhost", timeout=30)
        self.path = os.path.join(PLACE, name, "socket")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def call(self, method, path, body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.getresponse()
        data = response.read()
        self.close()
        return response.status, json.loads(data) if data else None


def set_the_stage():
    """Bob is trusted, in a session and in a group, carol waits for an answer, and there is something unread: whatever the test has done meanwhile."""
    alice, bob, carol = Daemon("alice"), Daemon("bob"), Daemon("carol")
    alice.call("PUT", "/v1/peers/bob/trust", {"trust": "trusted"})
    if not alice.call("GET", "/v1/sessions")[1]["sessions"]:
        alice.call("POST", "/v1/invitations?wait=true", {"peer": "bob", "timeout_seconds": 5})
    if alice.call("GET", "/v1/peers/carol")[1].get("trust") != "unknown":
        alice.call("PUT", "/v1/peers/carol/trust", {"trust": "unknown"})
    for session in carol.call("GET", "/v1/sessions")[1]["sessions"]:
        carol.call("DELETE", f"/v1/sessions/{session['id']}")
    carol.call("POST", "/v1/invitations", {"peer": "alice", "context": "aGVsbG8="})
    alice.call("PUT", "/v1/peers/dave/trust", {"trust": "unknown"})
    alice.call("POST", "/v1/invitations", {"peer": "dave"})
    bob.call("POST", "/v1/messages", {"to": ["alice"], "body": "still there?", "timeout_seconds": 2})
    # The older offers are taken, so that there is something to fetch; the newest waits for an answer.
    for row in alice.call("GET", "/v1/resources")[1]["resources"]:
        if row["direction"] == "incoming" and row["state"] == "offered":
            alice.call("POST", f"/v1/resources/{row['id']}/response", {"decision": "accept"})
    bob.call("POST", "/v1/resources", {"to": ["alice"], "path": os.path.join(PLACE, "small")})
    set_the_groups(alice, bob)


def set_the_groups(alice, bob):
    """A group of alice's that bob is a member of; of those that the test has made the latest stay."""
    groups = [group for group in alice.call("GET", "/v1/groups")[1]["groups"] if group["role"] == "creator"]
    for group in groups[:-2]:
        alice.call("DELETE", f"/v1/groups/{group['id']}?dissolve=true")
    if groups:
        group = groups[-1]
    else:
        group = alice.call("POST", "/v1/groups", {"name": "team"})[1]
    # By the id: the test gives bob other names.
    peer = bob.call("GET", "/v1/status")[1]["peer_id"]
    if not any(member["peer_id"] == peer for member in group["members"]):
        alice.call("POST", f"/v1/groups/{group['id']}/invitations", {"peers": ["bob"], "timeout_seconds": 5})
        for invitation in awaited_invitations(bob):
            bob.call("POST", f"/v1/invitations/{invitation['id']}/response", {"decision": "accept"})
    return group


def awaited_invitations(daemon):
    """The invitations to groups that wait there, once there is one; none after a second."""
    for _ in range(50):
        rows = daemon.call("GET", "/v1/invitations")[1]["invitations"]
        rows = [row for row in rows if row["direction"] == "incoming" and row["state"] == "pending" and row["group"]]
        if rows:
            return rows
        time.sleep(0.02)
    return []


def let_something_wait():
    """An invitation and a message of alice's that nobody takes."""
    alice = Daemon("alice")
    alice.call("PUT", f"/v1/peers/{ABSENT}/trust", {"trust": "trusted"})
    alice.call("POST", "/v1/invitations", {"peer": ABSENT, "timeout_seconds": 60})
    alice.call("POST", "/v1/messages", {"to": [ABSENT], "body": "later", "queue": True})


def known_ids(path):
    """Ids that the call's path could mean now."""
    kind = path.split("/")[2]
    if kind == "streams":
        return []
    query = "?state=all" if kind in ("invitations", "messages") else ""
    _, listing = Daemon("alice").call("GET", f"/v1/{kind}{query}")
    rows = listing["messages" if kind == "outbox" else kind]
    if path.endswith("/response"):
        rows = [row for row in rows if row["direction"] == "incoming" and row["state"] in ("pending", "offered")] or rows
    if path.endswith("/content"):
        rows = [row for row in rows if row.get("in_spool")] or rows
    if path == "/v1/invitations/{id}":
        rows = [row for row in rows if row["direction"] == "outgoing" and row["state"] == "pending"] or rows
    return [row["message_id"] if kind == "outbox" else row["id"] for row in rows]


def choice(case, *options):
    """One of the options, by what the case is: the same in every run with the same seed."""
    text = f"{case.method} {case.path} {calls} {case.body!r}"
    return options[zlib.crc32(text.encode("utf-8", "surrogatepass")) % len(options)]


@schemathesis.hook
def before_call(context, case, kwargs):
    global calls
    if calls % 25 == 0:
        set_the_stage()
    calls += 1
    meta = getattr(case, "meta", None)
    if meta is None or meta.generation.mode is not GenerationMode.POSITIVE:
        return
    parameters = case.path_parameters or {}
    if "peer" in parameters and (name := choice(case, "bob", "carol", None)):
        parameters["peer"] = name
    if "group" in parameters and choice(case, True, True, True, False):
        # One that there is, with bob in it.
        parameters["group"] = set_the_groups(Daemon("alice"), Daemon("bob"))["id"]
        if "peer" in parameters:
            parameters["peer"] = choice(case, "bob", "bob", "carol")
    if case.method == "DELETE" and case.path in ("/v1/invitations/{id}", "/v1/outbox/{id}"):
        let_something_wait()
    if "id" in parameters and choice(case, True, True, False) and (ids := known_ids(case.path)):
        parameters["id"] = choice(case, *ids)
    query = case.query or {}
    for key in ("to", "from"):
        if key in query and choice(case, True, False):
            query[key] = "bob"
    body = case.body
    if isinstance(body, dict):
        if "peer" in body and (name := choice(case, "bob", "dave", "nobody")):
            body["peer"] = name
        if isinstance(body.get("peers"), list) and (name := choice(case, "bob", "dave", None)):
            body["peers"] = [name]
        if isinstance(body.get("to"), list) and choice(case, True, True, False):
            body["to"] = ["bob"]
        if isinstance(body.get("path"), str) and choice(case, True, False):
            body["path"] = os.path.join(PLACE, "small")
            # Any others than the file's own are refused.
            for key in ("name", "device", "inode"):
                body.pop(key, None)
        if isinstance(body.get("timeout_seconds"), (int, float)) and body["timeout_seconds"] > 1:
            body["timeout_seconds"] = 1


@schemathesis.hook
def after_call(context, case, response):
    key = f"{case.method.upper()} {case.operation.path}"
    row = counts.setdefault(key, {})
    row[str(response.status_code)] = row.get(str(response.status_code), 0) + 1
    elapsed = getattr(response, "elapsed", None)
    if isinstance(elapsed, (int, float)):
        row["slowest"] = round(max(row.get("slowest", 0), elapsed), 3)
    with open(COUNTS, "w") as file:
        json.dump(counts, file)
