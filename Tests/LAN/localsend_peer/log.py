"""The record of one run: events and violations, one JSON line each."""

import json
import threading
import time

from rules import RULES


class Log:
    """Collects events, prints each as a JSON line, and counts the other side's violations of the protocol."""

    def __init__(self, stream=None, tolerated=()):
        self.stream = stream
        self.tolerated = set(tolerated)
        self.events = []
        self._began = time.monotonic()
        self._changed = threading.Condition()

    def event(self, name, /, **fields):
        line = {"event": name, "at": round(time.monotonic() - self._began, 3)}
        line.update((key, value) for key, value in fields.items() if value is not None)
        with self._changed:
            self.events.append(line)
            if self.stream is not None:
                # ensure_ascii keeps a hostile name from reaching a terminal.
                print(json.dumps(line), file=self.stream, flush=True)
            self._changed.notify_all()
        return line

    def violation(self, rule, detail=None, /, **fields):
        """Reports behaviour that the protocol does not allow. A tolerated rule is printed, but does not fail the run."""
        assert rule in RULES, rule
        self.event("tolerated" if rule in self.tolerated else "violation", rule=rule, detail=detail, **fields)

    @property
    def violations(self):
        with self._changed:
            return [line["rule"] for line in self.events if line["event"] == "violation"]

    def named(self, name):
        with self._changed:
            return [line for line in self.events if line["event"] == name]

    def wait(self, name, count=1, timeout=10):
        """Returns the first `count` events of this name, once they exist."""
        with self._changed:
            found = lambda: [line for line in self.events if line["event"] == name]
            if not self._changed.wait_for(lambda: len(found()) >= count, timeout):
                raise TimeoutError(f"no {name} within {timeout} s: {self.events}")
            return found()[:count]
