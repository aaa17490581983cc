"""A group of 64 on one machine, and one of 16: until all are connected, a message to all others on disk, and what a member takes."""

import time

from laboratory import Daemon
from parts.latency import SIZE, Control, percentile

# The larger is what the aim is about; the smaller tells how what a member takes grows.
MEMBERS = (16, 64)
MESSAGES = 200
IDLE = 20


class Member(Daemon):
    """A daemon of a group, with a connection to its API that is kept."""

    def __init__(self, bench, host, name):
        super().__init__(bench, host, name=name, place=bench.disk, arguments=["--service-type", f"group{name.split('-')[0]}"])
        self.control = Control(self.socket)
        self.peer = self.get("/v1/status")["peer_id"]

    def get(self, path):
        return self.control.ask("GET", path)

    def post(self, path, value=None):
        return self.control.ask("POST", path, value or {})


def team(bench, count):
    """So many daemons, on two hosts by turns, that see each other."""
    members = [Member(bench, (bench.alice, bench.bob)[number % 2], f"{count}-{number}") for number in range(count)]
    for member in members:
        bench.until(lambda: member.get("/v1/status")["counts"]["peers"] >= count - 1, f"{member.name} to see all", 180)
    return members


def join(bench, members):
    """All in one group; its id, and the seconds from the first invitation until each is connected to each."""
    creator, others = members[0], members[1:]
    began = time.perf_counter()
    group = creator.post("/v1/groups", {"name": "team"})["id"]
    creator.post(f"/v1/groups/{group}/invitations", {"peers": [member.peer for member in others]})
    for member in others:
        def invitation():
            return [one for one in member.get("/v1/invitations")["invitations"] if one["direction"] == "incoming"]

        bench.until(invitation, f"{member.name} is invited", 60)
        member.post(f"/v1/invitations/{invitation()[0]['id']}/response", {"decision": "accept"})

    def connected(member):
        rows = member.get(f"/v1/groups/{group}")["members"]
        return len(rows) == len(members) and all(row["state"] == "connected" for row in rows)

    for member in members:
        bench.until(lambda: connected(member), f"{member.name} is connected to all", 180)
    return group, time.perf_counter() - began


def talk(sender, group, count):
    """Milliseconds of each message, until the last of the others has it on disk."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        answer = sender.post("/v1/messages", {"group": group, "body": "x" * SIZE})
        times.append((time.perf_counter() - began) * 1e3)
        if any(recipient["status"] != "delivered" for recipient in answer["recipients"]):
            raise RuntimeError(f"a message was not delivered: {answer}")
    return sorted(times)


def measure(bench, count):
    members = team(bench, count)
    try:
        alone = sum(member.status("VmRSS") for member in members) / count
        group, seconds = join(bench, members)
        bench.row(f"{count} members: until each is connected to each", seconds, "s", "from the first invitation on")
        # What was put off for when it is quiet.
        time.sleep(5)
        resident = sum(member.status("VmRSS") for member in members) / count
        bench.row("  resident, a member", resident / 1024, "MiB", f"{(resident - alone) / (count - 1):.0f} kB a connection")
        switches, cpu = sum(member.switches() for member in members), sum(member.cpu_seconds() for member in members)
        time.sleep(IDLE)
        bench.row("  wake-ups a second, idle, a member", (sum(member.switches() for member in members) - switches) / IDLE / count, "1/s")
        bench.row("  CPU, idle, a member", (sum(member.cpu_seconds() for member in members) - cpu) / IDLE / count * 100, "%")
        talk(members[1], group, MESSAGES // 4)
        cpu = sum(member.cpu_seconds() for member in members)
        times = talk(members[1], group, MESSAGES)
        spent = (sum(member.cpu_seconds() for member in members) - cpu) / MESSAGES * 1e3
        median = percentile(times, 0.5)
        what = f"  a message to {count - 1} on disk, p50"
        if count == MEMBERS[-1]:
            bench.judge(what, median, "ms", 50, 25, median <= 50)
        else:
            bench.row(what, median, "ms")
        bench.row(f"  a message to {count - 1} on disk, p99", percentile(times, 0.99), "ms")
        bench.row("  CPU of all members for it", spent, "ms", f"{spent / count:.2f} ms a member")
    finally:
        for member in members:
            member.control.close()
        bench.end()


def run(bench):
    for count in MEMBERS:
        measure(bench, count)
