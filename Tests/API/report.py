"""What the run of schemathesis reached, and whether it was enough; then the daemon's figures, read as Prometheus reads them.

    report.py PLACE
"""

import collections
import http.client
import json
import os
import re
import socket
import sys

from prometheus_client.parser import text_string_to_metric_families

PLACE = sys.argv[1]
faults = []


class Daemon(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.path.join(PLACE, self.host, "socket"))


def get(path):
    daemon = Daemon("alice")
    daemon.request("GET", path, headers={"Host": "localhost"})
    response = daemon.getresponse()
    return response.headers["Content-Type"], response.read().decode()


def reached():
    document = json.loads(get("/v1/openapi.json")[1])
    with open(os.path.join(PLACE, "counts.json")) as file:
        counts = json.load(file)
    total = collections.Counter()
    slowest = max((row.get("slowest", 0), call) for call, row in counts.items())
    for row in counts.values():
        total.update({status: count for status, count in row.items() if status != "slowest"})
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            seen = counts.get(f"{method.upper()} {path}", {})
            wanted = [status for status in call["responses"] if status.startswith("2")]
            if path == "/v1/openapi.json":
                continue  # Fetched as the schema, and no call of the test.
            if call["operationId"] in ("openStream", "readNextStream"):
                continue  # They wait for the other end of a stream.
            if path.startswith("/v1/streams/"):
                wanted = []  # So there is no stream to be had.
            if not seen:
                faults.append(f"{method.upper()} {path} was never called")
            elif wanted and not any(status.startswith("2") for status in seen):
                faults.append(f"{method.upper()} {path} never succeeded: {seen}")
    print("answers:", ", ".join(f"{status} {count}" for status, count in sorted(total.items())))
    print(f"slowest: {slowest[0]} s, {slowest[1]}")


def figures():
    kind, text = get("/v1/metrics")
    if kind != "text/plain; version=0.0.4; charset=utf-8":
        faults.append(f"the metrics' content type is {kind}")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    print(f"metrics: {len(families)} families, {sum(len(family.samples) for family in families.values())} samples")
    for name, family in families.items():
        samples = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
        if not name.startswith(("earshot_", "process_")) or family.type not in ("counter", "gauge") or not family.documentation:
            faults.append(f"the metric {name} is a {family.type}: {family.documentation!r}")
        if len(samples) != len(set(samples)):
            faults.append(f"the metric {name} has a sample twice")
        if any(not re.fullmatch(r"[a-z_]+", label) for _, labels in samples for label, _ in labels):
            faults.append(f"the metric {name} has a label that is no word")
    for name in ("earshot_messages_received", "earshot_resources_finished", "earshot_api_requests", "earshot_connections"):
        if name not in families or sum(sample.value for sample in families[name].samples) == 0:
            faults.append(f"the metric {name} is missing, or counts nothing")


reached()
figures()
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
